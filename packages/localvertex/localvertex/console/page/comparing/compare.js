// Two to eight runs side by side.

import { useLoad } from "../server/load.js";
import { go, link } from "../ui/address.js";
import { Empty, html, Loading, Notice, Page, Problem } from "../ui/ui.js";
import { Chosen } from "./chosen.js";
import { Curves } from "./curves.js";
import { Predictions } from "./predictions.js";
import { Metrics, Parameters, Steps } from "./tables.js";

const [MIN_RUNS, MAX_RUNS] = [2, 8];

/** @param {{query: URLSearchParams}} props */
export default function Compare({ query }) {
  const ids = (query.get("runs") ?? "").split(",").filter(Boolean);
  const show = (/** @type {string[]} */ chosen) => go(link(["compare"], { runs: chosen.join(",") }), { replace: true });
  const canCompare = ids.length >= MIN_RUNS && ids.length <= MAX_RUNS;
  return html`<${Page} title="Compare runs" parent=${{ title: "Runs", href: link(["runs"]) }}>
    <div class="compare">
      <${Chosen} ids=${ids} canAdd=${ids.length < MAX_RUNS} onChange=${show} />
      ${canCompare && html`<${Comparison} key=${ids.join()} ids=${ids} />`}
      ${ids.length < MIN_RUNS && html`<${Empty} title="Choose two or more runs" />`}
      ${
        ids.length > MAX_RUNS && html`<${Notice} kind="warn">At most ${MAX_RUNS} runs can be compared; remove some.<//>`
      }
    </div>
  <//>`;
}

/** @param {{ids: string[]}} props */
function Comparison({ ids }) {
  const query = new URLSearchParams({ runs: ids.join(",") });
  const { data, error, reload } = useLoad(`/local/compare?${query}`);
  if (error) return html`<${Problem} title="These runs cannot be compared" error=${error} onRetry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const files = new Set(data.runs.map((/** @type {any} */ run) => run.spec).filter(Boolean));
  return html`
    ${files.size > 1 && html`<${Notice}>The runs were started from different pipelines.<//>`}
    <${Metrics} runs=${data.runs} rows=${data.metrics} />
    <${Parameters} runs=${data.runs} rows=${data.parameters} />
    <${Curves} runs=${data.runs} steps=${data.steps} query=${query} />
    <${Predictions} runs=${data.runs} query=${query} />
    <${Steps} runs=${data.runs} rows=${data.steps} numMore=${data.num_more_steps} />`;
}
