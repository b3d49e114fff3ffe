// The search of a log: the server returns the offsets of the lines with a text.
import { get } from "../server/server.js";
import { count, html, Input, useEffect, useRef, useState } from "../ui/ui.js";

/**
 * @typedef {object} Matches
 * @property {number[]} offsets - Of the lines, in bytes, ascending.
 * @property {number} begin - The log before this offset was not searched.
 * @property {number} size - Of the file when it was searched; -1 before the first answer.
 * @property {string} error
 */

/** @type {Matches} */
const NONE = { offsets: [], begin: 0, size: -1, error: "" };

/** Milliseconds without a key after which the server is queried. */
const PATIENCE = 200;

/**
 * Search a log, and move between the lines that match.
 * @param {string} path - Where its pieces are.
 * @param {string} task
 * @param {import("./text.js").LogWindow} log
 * @param {number | null} at - The place in the log where the user is.
 * @param {(offset: number) => void} onMatch - Goes to a line.
 */
export function useSearch(path, task, log, at, onMatch) {
  const [text, setText] = useState("");
  const [matches, setMatches] = useState(NONE);
  const asked = useRef("");
  const waiting = useRef(0);
  const read = async () => {
    const key = JSON.stringify([path, task, log.file, log.round, text]);
    asked.current = key;
    const address = `${path}/search?${new URLSearchParams({ task, file: log.file, search: text })}`;
    const found = await get(address).then(
      ({ matches: offsets, begin, size }) => ({ offsets, begin, size, error: "" }),
      (error) => ({ ...NONE, size: log.size, error: error.message }),
    );
    if (asked.current === key) setMatches(found);
  };
  useEffect(() => {
    asked.current = "";
    setMatches(NONE);
    if (!text || !log.isRead) return;
    const timer = setTimeout(read, PATIENCE);
    return () => clearTimeout(timer);
  }, [text, path, task, log.file, log.round, log.isRead]);
  const move = (/** @type {number} */ by) => {
    waiting.current = text && matches.size < log.size ? by : 0;
    // What was added to the log is searched, too.
    if (waiting.current) read();
    else if (matches.offsets.length) onMatch(target(matches.offsets, at, by));
  };
  useEffect(() => {
    if (matches.size >= 0 && waiting.current && matches.offsets.length) {
      onMatch(target(matches.offsets, at, waiting.current));
    }
    if (matches.size >= 0) waiting.current = 0;
  }, [matches]);
  return { text, input: setText, move, matches, isBusy: text !== "" && matches.size < 0 };
}

/**
 * Return the line to go to, by default the newest one.
 * @param {number[]} offsets @param {number | null} at @param {number} by - 1 or -1.
 * @returns {number}
 */
function target(offsets, at, by) {
  const [first, last] = [offsets[0], offsets[offsets.length - 1]];
  if (at === null) return last;
  return by < 0 ? (offsets.findLast((each) => each < at) ?? last) : (offsets.find((each) => each > at) ?? first);
}

/**
 * The field of the search, with the number of lines that match.
 * @param {{found: ReturnType<typeof useSearch>, at: number | null}} props
 */
export function Search({ found, at }) {
  const { text, input, move, matches, isBusy } = found;
  const go = (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && move(event.shiftKey ? -1 : 1);
  const isNone = !matches.offsets.length && !isBusy;
  return html`<span class="search" role="search">
    <${Input} type="search" placeholder="Search the log" aria-label="Search the log" value=${text} maxlength="200"
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
  if (isBusy) return "Searching…";
  const { length } = offsets;
  const where = begin ? " in the last 64 MiB" : "";
  if (!length) return `No match${where}`;
  const index = at === null ? -1 : offsets.indexOf(at);
  const all = length === 1 ? "1 line" : `${count(length)} lines`;
  return `${index < 0 ? all : `${count(index + 1)} of ${count(length)}`}${where}`;
}
