// The search of a log: the offsets of the lines with a text, in the whole file.
import { bytes, count, html, Input, useEffect, useRef, useState } from "../ui/ui.js";
import { plain } from "./text.js";

/** Of a log that can be searched: the page reads all of it. */
const MOST_BYTES = 256_000_000;

const MOST_MATCHES = 10_000;

/** Between two pauses of a search, in which the page answers. */
const PART_BYTES = 1_000_000;

/** @type {Matches} */
const NONE = { offsets: [], size: -1, error: "" };

/** Milliseconds without a key after which the log is searched. */
const PATIENCE = 200;

/**
 * Search a log, and move between the lines that match.
 * @param {string} path - Where its pieces are.
 * @param {string} task
 * @param {LogWindow} log
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
    const address = `${path}/file?${new URLSearchParams({ task, file: log.file })}`;
    const found = await linesWith(text, address, () => asked.current === key).catch((error) => ({
      ...NONE,
      size: log.size,
      error: error.message,
    }));
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
 * Return the offsets of the lines of a file with a text, whatever its case; of many, the last ones.
 * @param {string} text @param {string} address
 * @param {() => boolean} [isWanted] - Otherwise the search ends.
 * @returns {Promise<Matches>}
 */
export async function linesWith(text, address, isWanted = () => true) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
  const length = Number(response.headers.get("Content-Length"));
  if (length > MOST_BYTES) {
    // Otherwise the connection stays in use, and a browser has few.
    await response.body?.cancel();
    throw new Error(`The log has ${bytes(length)}; download it to search it`);
  }
  const data = new Uint8Array(await response.arrayBuffer());
  const [wanted, decoder] = [text.toLowerCase(), new TextDecoder()];
  const offsets = [];
  for (let start = 0, next = PART_BYTES; start < data.length; ) {
    if (start > next) {
      next = start + PART_BYTES;
      await new Promise((resume) => setTimeout(resume));
      if (!isWanted()) return NONE;
    }
    const newline = data.indexOf(10, start);
    const end = newline < 0 ? data.length : newline;
    if (
      plain(decoder.decode(data.subarray(start, end)))
        .toLowerCase()
        .includes(wanted)
    )
      offsets.push(start);
    start = end + 1;
  }
  return { offsets: offsets.slice(-MOST_MATCHES), size: data.length, error: "" };
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

/** The field of the search, with the number of lines that match. @param {SearchProps} props */
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
function status({ offsets, error }, at, isBusy) {
  if (error) return error;
  if (isBusy) return "Searching…";
  const { length } = offsets;
  if (!length) return "No match";
  const index = at === null ? -1 : offsets.indexOf(at);
  const all = length === 1 ? "1 line" : `${count(length)} lines`;
  return index < 0 ? all : `${count(index + 1)} of ${count(length)}`;
}
