// Create a run: choose a compiled pipeline, see its checks, fill in its form, start it.
import { html, Page } from "../ui/ui.js";
import { Draft } from "./draft.js";
import { usePipeline } from "./pipeline.js";

/** @param {{query: URLSearchParams}} props */
export default function Create({ query }) {
  const { overview, server, key, choice, leave } = usePipeline(query, "#/create");
  const parent = overview ? { title: "Choose another pipeline", href: "#/create" } : undefined;
  const title = overview ? `Create run: ${overview.pipeline}` : "Create run";
  return html`<div onClickCapture=${(/** @type {any} */ event) => event.target.closest?.("a.parent") && leave()}>
    <${Page} title=${title} parent=${parent}>
      ${choice}
      ${overview && html`<${Draft} key=${key} overview=${overview} server=${server} />`}
    <//>
  </div>`;
}
