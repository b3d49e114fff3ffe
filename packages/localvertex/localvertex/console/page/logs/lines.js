// The lines of a block, with marks for matches of the search and the line of the address. All of it is text.
import { html, useMemo } from "../ui/ui.js";
import { indexOf, shown } from "./text.js";

/** Matches that are marked in one block. */
const MOST_MATCHES = 100;

/**
 * One block; it is drawn again only when its text, the search or its marked line changes.
 * @param {object} props
 * @param {Block} props.block
 * @param {string} props.search
 * @param {number} props.at - Offset of a byte in the block, whose line is marked; -1 for none.
 */
export function Lines({ block, search, at }) {
  return useMemo(() => html`<pre>${drawn(block, search, at)}</pre>`, [block.text, search, at]);
}

/** What kfp writes at the beginning of each step: all that it was given. */
const DUMP = /(?<=Got executor_input:\n)\{\n(?: .*\n)*(?:\}\n)?/;

/** @param {Block} block @param {string} search @param {number} at */
function drawn(block, search, at) {
  const { text } = block;
  const found = at < 0 ? DUMP.exec(text) : null;
  // A search may be for something in it.
  if (found) {
    const [[dump], index] = [found, found.index];
    return [
      ...marked(shown(text.slice(0, index)), search),
      html`<details open=${search !== ""}><summary onClick=${(event) => event.stopPropagation()}>
        ${dump.split("\n").length - 1} lines</summary><span>${marked(shown(dump), search)}</span></details>`,
      ...marked(shown(text.slice(index + dump.length)), search),
    ];
  }
  if (at < 0) return marked(shown(text), search);
  const [start, end] = lineAt(text, indexOf(block, at));
  // The line is not cut, because a match may be anywhere in it.
  return [
    ...marked(shown(text.slice(0, start)), search),
    html`<span class="line" aria-current="true">
      ${marked(shown(text.slice(start, end), true), search)}
    </span>`,
    ...marked(shown(text.slice(end)), search),
  ];
}

/**
 * Return where the line of an index begins and ends.
 * @param {string} text @param {number} index @returns {[number, number]}
 */
export function lineAt(text, index) {
  const end = text.indexOf("\n", index);
  return [index ? text.lastIndexOf("\n", index - 1) + 1 : 0, end < 0 ? text.length : end];
}

/**
 * Return a text with the matches of a search marked, whatever their case.
 * @param {string} text
 * @param {string} search
 * @returns {any[]}
 */
function marked(text, search) {
  if (!search) return [text];
  const pattern = new RegExp(search.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi");
  const parts = [];
  let start = 0;
  for (const { index, 0: found } of text.matchAll(pattern)) {
    if (parts.length >= 2 * MOST_MATCHES) break;
    parts.push(text.slice(start, index), html`<mark>${found}</mark>`);
    start = index + found.length;
  }
  return [...parts, text.slice(start)];
}
