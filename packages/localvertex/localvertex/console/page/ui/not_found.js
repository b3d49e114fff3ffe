// The view of an address that does not exist.

import { html } from "./html.js";
import { Empty, Page } from "./page.js";

export default function NotFound() {
  return html`<${Page} title="Not found">
    <${Empty} title="This address does not exist"><a href="#/runs">Show all runs</a><//>
  <//>`;
}
