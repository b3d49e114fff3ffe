// The graph of a pipeline that has not run yet.
import { html } from "../../html.js";

/** @param {{content: string}} props */
export function Preview({ content }) {
  return content ? null : html`<p></p>`;
}
