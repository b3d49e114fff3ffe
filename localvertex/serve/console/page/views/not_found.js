// The view of an address that does not exist.
import { html } from "../html.js";
import { link } from "../routes.js";
import { Empty, Page } from "../ui/page.js";

export default function NotFound() {
  return html`<${Page} title="Not found">
    <${Empty} title="This address does not exist"><a href=${link(["runs"])}>Show all runs</a><//>
  <//>`;
}
