// A report: the view of one run, whose data is in the page itself. No server is needed, and none is asked.

import Run from "./runs/run.js";
import { report } from "./server/report.js";
import { html, Problem, render, useEffect, useErrorBoundary, useState } from "./ui/ui.js";

/** The step and the tabs of the address; all of it is of the one run. */
function place() {
  const [path, search = ""] = location.hash.split("?", 2);
  let task = path.split("/")[3] ?? "";
  try {
    task = decodeURIComponent(task);
  } catch {
    // No step has the name of a damaged address.
  }
  return { params: { id: report?.run.id, task }, query: new URLSearchParams(search) };
}

function Report() {
  const [shown, setShown] = useState(place);
  const [failure] = useErrorBoundary();
  useEffect(() => {
    const change = () => setShown(place());
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return html`<main id="main" class="view" tabindex="-1">
    ${failure && html`<${Problem} title="This report cannot be shown" error=${failure} />`}
    ${!failure && html`<${Run} ...${shown} />`}
  </main>`;
}

const root = /** @type {HTMLElement} */ (document.getElementById("page"));
root.replaceChildren();
render(html`<${Report} />`, root);
