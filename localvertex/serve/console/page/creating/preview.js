// The graph of a pipeline that has not run yet.

import { Graph, useGraph } from "../graph/graph.js";
import { post } from "../server/api.js";
import { html } from "../ui/html.js";
import { Loading, Section } from "../ui/page.js";
import { Problem } from "../ui/problem.js";

/** @param {{content: string}} props */
export function Preview({ content }) {
  const { graph, error, toggle } = useGraph((closed) => post("/local/graph", { content, closed }), [content]);
  return html`<${Section} title="Graph">
    ${error && html`<${Problem} title="No graph" error=${error} />`}
    ${!graph && !error && html`<${Loading} />`}
    ${graph && html`<${Graph} graph=${graph} onToggle=${toggle} />`}
  <//>`;
}
