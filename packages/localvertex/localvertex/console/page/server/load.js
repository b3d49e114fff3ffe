// Hooks that read from the server: a path once, or the event stream.

import { useCallback, useEffect, useRef, useState } from "../vendor/hooks.js";
import { get, post } from "./api.js";
import { follow } from "./events.js";

/** @typedef {import("./api.js").ApiError} ApiError */

/**
 * Read a path, again when it changes. What was read before stays until the new answer is here.
 * @param {string | null} path - Null: nothing is read.
 * @returns {{data: any, error: ApiError | null, isLoading: boolean, reload: () => void,
 *   setData: (change: any) => void, isStale: boolean}} `isStale`: the data is that of another path.
 */
export function useLoad(path) {
  const [data, setData] = useState(/** @type {any} */ (undefined));
  const [source, setSource] = useState(path);
  const [error, setError] = useState(/** @type {ApiError | null} */ (null));
  const [isLoading, setIsLoading] = useState(path !== null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === null) return;
    let isCurrent = true;
    setIsLoading(true);
    get(path)
      .then(
        (answer) => {
          if (!isCurrent) return;
          setData(answer);
          setSource(path);
          setError(null);
        },
        (problem) => isCurrent && setError(problem),
      )
      .finally(() => isCurrent && setIsLoading(false));
    return () => {
      isCurrent = false;
    };
  }, [path, round]);
  const reload = useCallback(() => setRound((number) => number + 1), []);
  return { data, error, isLoading, reload, setData, isStale: source !== path };
}

/**
 * Post a body a moment after its last change. The answer to the last one stays until the new one is here.
 * @param {string} path
 * @param {object | null} body - Posted when it is another object. Null: nothing is posted.
 * @param {number} [delay] - Milliseconds without a change.
 * @returns {{answer: any, error: ApiError | null, isCurrent: boolean}} `isCurrent`: both belong to this body.
 */
export function usePost(path, body, delay = 0) {
  const [found, setFound] = useState(/** @type {any} */ ({ answer: null, error: null, of: null }));
  useEffect(() => {
    if (!body) return;
    let isWanted = true;
    const keep = (/** @type {object} */ change) =>
      isWanted && setFound((/** @type {any} */ before) => ({ ...before, error: null, ...change, of: body }));
    const ask = () =>
      post(path, body).then(
        (answer) => keep({ answer }),
        (error) => keep({ error }),
      );
    const timer = setTimeout(ask, delay);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [body]);
  return { ...found, isCurrent: found.of === body };
}

/**
 * Follow the event stream while a view is shown; a tab has one stream.
 * @param {Record<string, string> | null} query - Null: nothing is followed. Another query opens another stream.
 * @param {import("./events.js").Handlers} handlers - The newest ones are called.
 */
export function useEvents(query, handlers) {
  const newest = useRef(handlers);
  newest.current = handlers;
  const key = query && JSON.stringify(query);
  useEffect(() => {
    if (!key) return;
    /** @type {import("./events.js").Handlers} */
    const called = {};
    for (const name of Object.keys(newest.current)) called[name] = (data) => newest.current[name]?.(data);
    return follow(JSON.parse(key), called);
  }, [key]);
}

/**
 * Do something that changes the server's state, and keep whether it is being done and why it was refused.
 * @param {(...values: any[]) => Promise<any>} action
 * @returns {[(...values: any[]) => Promise<void>, {isBusy: boolean, error: ApiError | null}]}
 */
export function useAction(action) {
  const [isBusy, setIsBusy] = useState(false);
  const running = useRef(false);
  const [error, setError] = useState(/** @type {ApiError | null} */ (null));
  /** @param {...any} values */
  const run = async (...values) => {
    if (running.current) return;
    running.current = true;
    setIsBusy(true);
    setError(null);
    try {
      await action(...values);
    } catch (problem) {
      setError(/** @type {ApiError} */ (problem));
    } finally {
      running.current = false;
      setIsBusy(false);
    }
  };
  return [run, { isBusy, error }];
}
