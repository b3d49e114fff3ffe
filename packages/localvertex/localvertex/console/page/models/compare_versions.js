// Two versions of a model: their metrics, and what else differs.

import { useLoad } from "../server/load.js";
import { link } from "../ui/address.js";
import { change, figure, html, Loading, Problem, Table, Value } from "../ui/ui.js";
import { metricNames, metricsOf } from "./facts.js";

/** @param {{id: string, versions: string[]}} props - Two numbers, the older one first. */
export function CompareVersions({ id, versions }) {
  const [one, other] = versions.map((each) => useLoad(`/local/models/${encodeURIComponent(id)}/${each}`));
  const error = one.error ?? other.error;
  if (error) return html`<${Problem} error=${error} />`;
  if (one.data?.version !== versions[0] || other.data?.version !== versions[1]) return html`<${Loading} />`;
  const pair = [one.data, other.data];
  const metrics = pair.map(metricsOf);
  const rows = metricNames(metrics).map((name) => ({ name, values: metrics.map((each) => each[name]) }));
  const withoutRun = pair.filter((each) => !each.run).map((each) => each.version);
  const facts = pair.map((each) => factsOf(withoutRun.length ? { ...each, parameters: {} } : each));
  const differing = [...new Set(facts.flatMap(Object.keys))]
    .map((name) => ({ name, values: facts.map((each) => each[name]) }))
    .filter(({ values }) => JSON.stringify(values[0]) !== JSON.stringify(values[1]));
  return html`
    ${
      rows.length
        ? html`<${Table} caption="Metrics of both versions" rows=${rows} columns=${[
            { title: "Metric", isName: true, cell: nameOf },
            ...versions.map((version, index) => ({
              title: `Version ${version}`,
              isNumber: true,
              cell: (/** @type {any} */ row) => figure(row.values[index]),
            })),
            {
              title: "Difference",
              isNumber: true,
              cell: (/** @type {any} */ row) => change(row.values[0], row.values[1]),
            },
          ]} />`
        : html`<p class="muted">Neither version has metrics.</p>`
    }
    <p class="show-more">${
      withoutRun.length
        ? html`<span class="muted">
            The run of version ${withoutRun.join(" and ")} is not known, so parameters are not compared.</span>`
        : html`<a href=${link(["compare"], { runs: pair.map((each) => each.run).join(",") })}>Compare their runs</a>`
    }</p>
    <h3 class="what-differs">What differs</h3>
    ${
      differing.length
        ? html`<div class="breaking"><${Table} caption="What differs" rows=${differing} columns=${[
            { title: "Setting", isName: true, cell: nameOf },
            ...versions.map((version, index) => ({
              title: `Version ${version}`,
              cell: (/** @type {any} */ row) => html`<${Value} value=${row.values[index]} />`,
            })),
          ]} /></div>`
        : html`<p class="muted">No parameter, label or setting.</p>`
    }`;
}

/** @param {{name: string}} row */
const nameOf = (row) => row.name;

/** What a version was made of and is served by, by name. @param {any} version @returns {Record<string, any>} */
function factsOf(version) {
  const named = (/** @type {string} */ kind, /** @type {any} */ values) =>
    Object.entries(values ?? {}).map(([name, value]) => [`${kind} ${name}`, value]);
  return Object.fromEntries([
    ["description", version.version_description],
    ["dataset", version.datasets.join(", ")],
    ...named("parameter", version.parameters),
    ...named("label", version.labels),
    ...named("container", version.container),
    ["files (bytes)", version.num_bytes],
  ]);
}
