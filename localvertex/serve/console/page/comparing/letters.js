// The letter of each run in tables and charts, and names that break.
import { Fragment, html } from "../ui/ui.js";

/** The letter of the run at an index. @param {number} index */
export const letter = (index) => String.fromCharCode(65 + index);

/** The letter in the colour of its curve. @param {{index: number}} props */
export function Letter({ index }) {
  return html`<span class="letter" style=${{ background: `var(--run-${index})` }}>${letter(index)}</span>`;
}

/** A name that is broken after `_` and `/` where it is too long. @param {{text: string}} props */
export function Name({ text }) {
  const parts = text.split(/(?<=[_/])/);
  return html`<bdi>${parts.map((part, index) => html`<${Fragment} key=${index}>${part}<wbr /><//>`)}</bdi>`;
}
