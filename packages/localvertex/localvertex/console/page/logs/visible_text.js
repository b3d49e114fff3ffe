// The text of a log as it is shown: without escape sequences, progress bars in their last state, long lines cut.
import { count } from "../ui/ui.js";

const MOST_CHARACTERS = 4000;

// Both are also in localvertex/console/runs/log_text.py: the server searches what is shown.
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals write these.
const ESCAPES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(\u0007|\u001b\\)|\u001b[@-_]/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they would hide or reorder what follows.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** What the server sends for a byte that is not UTF-8. */
const INVALID = "\u001a";

/**
 * Return a text as it is shown.
 * @param {string} text
 * @param {boolean} [isWhole] - Long lines are not cut.
 */
export const shown = (text, isWhole = false) =>
  text
    .split("\n")
    .map((line) => (isWhole ? visible(stateOf(line)) : short(visible(stateOf(line)))))
    .join("\n");

/**
 * Return where a character of a line is in what is shown of it.
 * @param {string} line
 * @param {number} index
 */
export const columnOf = (line, index) => visible(line.slice(startOf(line), Math.max(startOf(line), index))).length;

/** @param {string} line */
const stateOf = (line) => line.slice(startOf(line)).replace(/\r+$/, "");

/** Where the last state of a progress bar begins. @param {string} line */
function startOf(line) {
  let end = line.length;
  while (line[end - 1] === "\r") end -= 1;
  return end ? line.lastIndexOf("\r", end - 1) + 1 : 0;
}

/** @param {string} text */
const visible = (text) => text.replace(ESCAPES, "").replace(INVISIBLE, written);

/** @param {string} text */
function short(text) {
  const left = text.length - MOST_CHARACTERS;
  return left > 0 ? `${text.slice(0, MOST_CHARACTERS)} … ${count(left)} more characters` : text;
}

/** @param {string} character */
const written = (character) =>
  character === INVALID ? "\ufffd" : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
