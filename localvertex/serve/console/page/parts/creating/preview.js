// The graph of a pipeline that has not run yet.
import { post } from "../../api.js";
import { html } from "../../html.js";
import { Loading, Section } from "../../ui/page.js";
import { Problem } from "../../ui/problem.js";
import { Graph, useGraph } from "../graph.js";

/** @param {{content: string}} props */
export function Preview({ content }) {
  const { graph, error, toggle } = useGraph((closed) => post("/local/graph", { content, closed }), [content]);
  return html`<${Section} title="Graph">
    ${error && html`<${Problem} title="No graph" error=${error} />`}
    ${!graph && !error && html`<${Loading} />`}
    ${graph && html`<${Graph} graph=${graph} onToggle=${toggle} />`}
  <//>`;
}
