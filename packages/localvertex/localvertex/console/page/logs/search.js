// The search in the whole file: the server reads it from its end to its beginning, and then what is added to it.
import { get } from "../server/server.js";
import { count, html, Input, useEffect, useRef, useState } from "../ui/ui.js";

/**
 * @typedef {object} Matches
 * @property {string} key - Of the search and the log to which these belong.
 * @property {number[]} offsets - In bytes, ascending.
 * @property {number | null} begin - The log before this offset has not been searched; null before the first answer.
 * @property {number} end - When the log grows, the search continues from this offset.
 * @property {number} size - Of the file at the last answer.
 * @property {string} error
 */

/** @type {Matches} */
const NONE = { key: "", offsets: [], begin: null, end: 0, size: 0, error: "" };

/** After this number of matches, the search continues only on a request for the previous one. */
const MOST = 10_000;

/** Milliseconds without a key after which the server is queried. */
const PATIENCE = 200;

/**
 * Search a log, and move between its matches.
 * @param {string} path - Where its pieces are.
 * @param {string} task
 * @param {import("./text.js").LogWindow} log
 * @param {number | null} at - The place in the log where the user is.
 * @param {(offset: number) => void} onMatch - Goes to a match.
 */
export function useSearch(path, task, log, at, onMatch) {
  const [text, setText] = useState("");
  const [search, setSearch] = useState("");
  const [most, setMost] = useState(MOST);
  const waiting = useRef(0);
  useEffect(() => {
    const timer = setTimeout(() => setSearch(text), text ? PATIENCE : 0);
    return () => clearTimeout(timer);
  }, [text]);
  const matches = useMatches(path, task, log, search, most);
  const isBusy = text !== "" && (text !== search || next(matches, log.size, most) !== null);
  const move = (/** @type {number} */ by) => {
    if (!text) return;
    const offset = text === search ? target(matches, at, by) : null;
    waiting.current = offset === null && (isBusy || matches.begin) ? by : 0;
    if (offset !== null) onMatch(offset);
    else if (!isBusy && matches.begin) setMost(matches.offsets.length + MOST);
    else setSearch(text);
  };
  useEffect(() => {
    if (waiting.current) move(waiting.current);
  }, [matches]);
  const input = (/** @type {string} */ value) => {
    waiting.current = 0;
    setMost(MOST);
    setText(value);
  };
  return { text, input, move, matches: text === search ? matches : NONE, isBusy };
}

/**
 * Ask for one part after the other, until the whole log is searched or has enough matches.
 * @param {string} path @param {string} task @param {any} log @param {string} search @param {number} most
 * @returns {Matches}
 */
function useMatches(path, task, log, search, most) {
  const key = search && log.isRead ? JSON.stringify([path, task, log.file, log.round, search]) : "";
  const [state, setState] = useState(NONE);
  const asked = useRef(/** @type {{key: string} | null} */ (null));
  const fresh = useRef(NONE);
  if (fresh.current.key !== key) fresh.current = { ...NONE, key };
  const found = state.key === key ? state : fresh.current;
  useEffect(() => {
    const places = key && next(found, log.size, most);
    if (!places || asked.current?.key === key) return;
    const question = { key };
    asked.current = question;
    const taken = (/** @type {(found: Matches) => Matches} */ change) => {
      if (asked.current !== question) return;
      asked.current = null;
      setState(change(found));
    };
    get(`${path}/search?${new URLSearchParams({ task, file: log.file, search, ...places })}`).then(
      (answer) => taken(() => merged(found, answer, "offset" in places)),
      (error) => taken(() => ({ ...found, error: error.message })),
    );
  }, [key, found, log.size, most]);
  return found;
}

/**
 * Return what to ask for next: the part that was added, or the part before; null for nothing.
 * @param {Matches} matches @param {number} size @param {number} most
 * @returns {Record<string, string> | null}
 */
function next({ offsets, begin, end, size: searched, error }, size, most) {
  if (error) return null;
  if (begin === null) return {};
  if (size > searched) return { offset: String(end) };
  return begin > 0 && offsets.length < most ? { before: String(begin) } : null;
}

/** @param {Matches} matches @param {any} answer @param {boolean} isLater @returns {Matches} */
function merged(matches, answer, isLater) {
  const { key, offsets, begin, end } = matches;
  const found = { key, error: "" };
  if (!isLater) {
    const size = begin === null ? answer.size : matches.size;
    const known = begin === null ? answer.end : end;
    return { ...found, offsets: [...answer.matches, ...offsets], begin: answer.begin, end: known, size };
  }
  // The last line was searched before it was complete.
  const before = offsets.slice(0, lowerBound(offsets, end));
  const size = answer.is_last ? answer.size : matches.size;
  return { ...found, offsets: [...before, ...answer.matches], begin, end: answer.end, size };
}

/**
 * Return the match to go to, by default the newest one; null when it is not known yet.
 * @param {Matches} matches @param {number | null} at @param {number} by - 1 or -1.
 */
function target({ offsets, begin }, at, by) {
  if (!offsets.length) return null;
  if (at === null) return offsets[offsets.length - 1];
  const bound = lowerBound(offsets, at);
  const index = by < 0 ? bound - 1 : bound + Number(offsets[bound] === at);
  if (index < 0) return begin ? null : offsets[offsets.length - 1];
  return offsets[index % offsets.length];
}

/** The index of the first number that is not smaller. @param {number[]} numbers @param {number} value */
function lowerBound(numbers, value) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The field of the search, with the number of matches.
 * @param {{found: ReturnType<typeof useSearch>, at: number | null}} props
 */
export function Search({ found, at }) {
  const { text, input, move, matches, isBusy } = found;
  const go = (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && move(event.shiftKey ? -1 : 1);
  const isNone = !matches.offsets.length && !isBusy;
  return html`<span class="search" role="search">
    <${Input} type="search" placeholder="Search the whole log" aria-label="Search the log" value=${text} maxlength="200"
      onKeyDown=${go} onText=${input} />
    <span class="muted" role="status">${text && status(matches, at, isBusy)}</span>
    ${
      text &&
      html`<button class="icon" aria-label="Previous match" disabled=${isNone} onClick=${() => move(-1)}>↑</button>
      <button class="icon" aria-label="Next match" disabled=${isNone} onClick=${() => move(1)}>↓</button>`
    }
  </span>`;
}

/** @param {Matches} matches @param {number | null} at @param {boolean} isBusy */
function status({ offsets, begin, error }, at, isBusy) {
  if (error) return error;
  const { length } = offsets;
  if (!length) return isBusy ? "Searching…" : "No match";
  const index = at === null ? -1 : lowerBound(offsets, at);
  const all = length === 1 ? "1 match" : `${count(length)} matches`;
  return `${offsets[index] === at ? `${count(index + 1)} of ${count(length)}` : all}${begin ? " so far" : ""}`;
}
