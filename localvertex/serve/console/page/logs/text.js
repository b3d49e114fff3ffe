// The text of a log as it is shown: no escape sequences, the last state of progress bars, no endless lines.
import { html } from "../ui/html.js";
import { count } from "../ui/numbers.js";

const MOST_CHARACTERS = 4000;
const MOST_MATCHES = 100;

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals write these.
const ESCAPES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(\u0007|\u001b\\)|\u001b[@-_]/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they would hide or reorder what follows.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Return a text as it is shown. @param {string} text */
export const shown = (text) => text.split("\n").map(shownLine).join("\n");

/** @param {string} line */
function shownLine(line) {
  // A pattern for those at the end would begin again at each of them.
  const state = line.split("\r").findLast(Boolean) ?? "";
  const left = state.length - MOST_CHARACTERS;
  const short = left > 0 ? `${state.slice(0, MOST_CHARACTERS)} … ${count(left)} more characters` : state;
  return short.replace(ESCAPES, "").replace(INVISIBLE, escaped);
}

/** @param {string} character */
const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * Return a text with the matches of a search marked, whatever their case.
 * @param {string} text
 * @param {string} search
 */
export function marked(text, search) {
  const whole = shown(text);
  if (!search) return whole;
  const pattern = new RegExp(search.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi");
  const parts = [];
  let start = 0;
  for (const match of whole.matchAll(pattern)) {
    parts.push(whole.slice(start, match.index), html`<mark>${match[0]}</mark>`);
    start = match.index + match[0].length;
    if (parts.length >= 2 * MOST_MATCHES) break;
  }
  return [...parts, whole.slice(start)];
}
