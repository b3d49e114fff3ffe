// The letter of each run in tables and charts.
import { html } from "../ui/ui.js";

/** @param {number} index */
export const letter = (index) => String.fromCharCode(65 + index);

/** The letter in the colour of its curve. @param {{index: number}} props */
export function Letter({ index }) {
  return html`<span class="letter" style=${{ background: `var(--run-${index % 8})` }}>${letter(index)}</span>${" "}`;
}
