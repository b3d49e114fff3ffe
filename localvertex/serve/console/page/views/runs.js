// The list of runs.
import { html } from "../html.js";
import { Page } from "../ui/page.js";

export default function Runs() {
  return html`<${Page} title="Runs" />`;
}
