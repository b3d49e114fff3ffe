// The list of runs.
import { html } from "../html.js";

export default function Runs() {
  return html`<main><h1>Runs</h1></main>`;
}
