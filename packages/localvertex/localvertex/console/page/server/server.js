// The server of this page: requests, the event stream of this tab, and the hooks that read them.

import { useCallback, useEffect, useRef, useState } from "../vendor/hooks.js";
import { answer, eventsOf, report } from "./report.js";

/** The default project and region; local routes show the resources of all locations. */
const LOCATION = "/v1/projects/local-project/locations/us-central1/";

export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {Refusal["details"]} details */
  constructor(status, message, details = []) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

/** @param {string} path - A collection or resource of Vertex AI in the default location. */
export const vertex = (path) => LOCATION + path;

/** @param {string} path */
export const get = (path) => request("GET", path);

/** @param {string} path @param {object} body */
export const post = (path, body = {}) => request("POST", path, body);

/** @param {string} path */
export const remove = (path) => request("DELETE", path);

/** Exchange the token for a cookie. @param {string} token */
export const openSession = (token) => request("POST", "/local/session", {}, { Authorization: `Bearer ${token}` });

/** @type {Ask} */
async function request(method, path, body, headers) {
  if (report) {
    const found = answer(path);
    if (!found) throw new ApiError(0, report.problem || "a report does not contain this; open the run in the console");
    return found;
  }
  const json = { headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) };
  const response = await fetch(path, { method, ...(body && json) }).catch(() => {
    throw new ApiError(0, "the server does not answer");
  });
  const content = await response.json().catch(() => ({}));
  if (response.ok) return content;
  const { message = `HTTP status ${response.status}`, details = [] } = content.error ?? {};
  throw new ApiError(response.status, message, details);
}

const RETRY_MS = 2000;

/** After this time without a heartbeat, which comes every 15 s, the connection or the server hangs. */
const SILENT_MS = 40000;

/** Between two attempts when the server has too many streams. */
const BUSY_RETRY_MS = 10000;

const LOST = "Connection lost: this page shows old data. Trying to reconnect.";

const BUSY = "Too many tabs of the console are open: this page shows old data. Close some tabs.";

/** @type {(() => void) | null} */
let closeCurrent = null;

/** @type {Set<(problem: string) => void>} */
const listeners = new Set();

/**
 * Call a listener with a text when the stream is lost, and with an empty one when it is back. In between, what is shown
 * may be out of date.
 * @type {OnConnection}
 */
export function onConnection(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** @param {string} problem */
function notify(problem) {
  for (const each of listeners) each(problem);
}

/**
 * Follow `GET /local/events`; an earlier stream of this tab is closed. Each connection begins with a fresh first event.
 * @type {Follow}
 */
export function follow(query, handlers) {
  if (report) {
    for (const [name, event] of eventsOf(query)) handlers[name]?.(event);
    return () => {};
  }
  closeCurrent?.();
  const address = `/local/events?${new URLSearchParams(query)}`;
  /** @type {EventSource | null} */
  let source = null;
  let timer = 0;
  const later = (/** @type {() => void} */ call, /** @type {number} */ ms) => {
    clearTimeout(timer);
    timer = setTimeout(call, ms);
  };
  const shut = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const open = () => {
    shut();
    if (document.hidden) return;
    source = new EventSource(address);
    source.onopen = () => notify("");
    source.onerror = lost;
    for (const name of new Set([...Object.keys(handlers), "end"])) {
      source.addEventListener(name, (event) => {
        if (name === "end") close();
        handlers[name]?.(JSON.parse(event.data || "{}"));
      });
    }
    source.addEventListener("alive", () => later(lost, SILENT_MS));
    later(lost, SILENT_MS);
  };
  async function lost() {
    shut();
    later(open, RETRY_MS);
    notify(LOST);
    // An EventSource does not see why it was refused.
    const answer = await fetch(address, { method: "HEAD" }).catch(() => null);
    if (answer?.status !== 503 || source || closeCurrent !== close) return;
    notify(BUSY);
    later(open, BUSY_RETRY_MS);
  }
  function close() {
    shut();
    document.removeEventListener("visibilitychange", open);
    if (closeCurrent === close) {
      closeCurrent = null;
      notify("");
    }
  }
  closeCurrent = close;
  document.addEventListener("visibilitychange", open);
  open();
  return close;
}

/**
 * Read a path, again when it changes. What was read before stays until the new answer is here. A reload during a read
 * waits for its answer: else frequent events would keep a slow one away for good.
 * @type {UseLoad}
 */
export function useLoad(path) {
  const [found, setFound] = useState(/** @type {any} */ ({ error: null, source: path }));
  const [round, setRound] = useState(0);
  const reading = useRef({ version: "", isDone: true });
  // An answer of at least this version need not be read again; no version is as high as the default.
  const reload = useCallback((version = "~") => {
    if (reading.current.isDone) setRound((number) => number + 1);
    else reading.current.version = version;
  }, []);
  useEffect(() => {
    if (path === null) return;
    const read = { version: "", isDone: false };
    reading.current = read;
    const keep = (/** @type {any} */ change) => {
      if (reading.current !== read) return;
      read.isDone = true;
      setFound((/** @type {object} */ before) => ({ ...before, ...change }));
      if (read.version && !(change.data?.version >= read.version)) reload();
    };
    get(path).then(
      (data) => keep({ data, source: path, error: null }),
      (error) => keep({ error }),
    );
  }, [path, round]);
  return { data: found.data, error: found.error, reload, isStale: found.source !== path };
}

/**
 * Post a body a moment after its last change. The answer to the last one stays until the new one is here.
 * @type {UsePost}
 */
export function usePost(path, body, delay = 0) {
  const [found, setFound] = useState(/** @type {any} */ ({ answer: null, error: null, of: null }));
  useEffect(() => {
    if (!body) return;
    let isWanted = true;
    const keep = (/** @type {object} */ change) =>
      isWanted && setFound((/** @type {object} */ before) => ({ ...before, error: null, ...change, of: body }));
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

/** Follow the event stream while a view is shown; a tab has one stream. @type {UseEvents} */
export function useEvents(query, handlers) {
  const newest = useRef(handlers);
  newest.current = handlers;
  const key = query && JSON.stringify(query);
  useEffect(() => {
    if (!key) return;
    /** @type {Handlers} */
    const called = {};
    for (const name of Object.keys(newest.current)) called[name] = (data) => newest.current[name]?.(data);
    return follow(JSON.parse(key), called);
  }, [key]);
}

/**
 * Do something that changes the server's state, and keep whether it is being done and why it was refused.
 * @type {UseAction}
 */
export function useAction(action) {
  const [isBusy, setIsBusy] = useState(false);
  const running = useRef(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  /** @type {Action} */
  const run = async (...values) => {
    if (running.current) return;
    running.current = true;
    setIsBusy(true);
    setError(null);
    try {
      await action(...values);
    } catch (problem) {
      setError(problem);
    } finally {
      running.current = false;
      setIsBusy(false);
    }
  };
  return [run, { isBusy, error }];
}
