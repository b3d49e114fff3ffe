// The versions of a model side by side, and what differs between two of them.

import { useLoad } from "../server/server.js";
import {
  Compared,
  change,
  figure,
  html,
  Loaded,
  link,
  metricNames,
  Section,
  Table,
  Time,
  useState,
  Value,
} from "../ui/ui.js";
import { Aliases, Fingerprints, metricColumns, metricsOf, Run } from "./facts.js";

const NUM_SHOWN = 25;

/** @type {Column[]} */
const DIFFERENCE = [{ title: "Difference", isNumber: true, cell: ({ values: [one, other] }) => change(one, other) }];

/** @param {{model: any}} props - The answer of `/local/models/ID/VERSION`. */
export function Versions({ model }) {
  const [selected, setSelected] = useState(/** @type {string[]} */ ([]));
  /** @type {OnSelect} */
  const select = ([key], isOn) =>
    setSelected(isOn ? [...selected, key].slice(-2) : selected.filter((each) => each !== key));
  const [one, other] = [...selected].sort((left, right) => Number(left) - Number(right));
  return html`
    <p class="muted">
      Metrics of the newest evaluation; without one, of the run. Select two versions to compare.
    </p>
    <${Table} caption="Versions" columns=${columnsOf(model)} rows=${model.versions} most=${NUM_SHOWN}
        keyOf=${(row) => row.version}
      nameOf=${(row) => `version ${row.version}`} selected=${new Set(selected)} onSelect=${select} />
    ${
      other &&
      html`<${Section} title=${`Version ${one} and version ${other}`}>
        <${CompareVersions} id=${model.id} versions=${[one, other]} />
      <//>`
    }`;
}

/** @param {ModelVersion & {versions: ModelVersion[]}} model @returns {Column[]} */
function columnsOf(model) {
  return [
    {
      title: "Version",
      isName: true,
      cell: (row) => html`
        <a href=${link(["models", model.id, row.version])}
            aria-current=${row.version === model.version ? "true" : undefined}>
          Version ${row.version}</a> <${Aliases} names=${row.aliases} />
        ${row.problem && html`<div class="small error">${row.problem}</div>`}`,
    },
    ...metricColumns(model.versions.map(metricsOf), metricsOf, 4),
    { title: "Run", cell: (row) => html`<${Run} id=${row.run} />` },
    { title: "Dataset", isWideOnly: true, cell: (row) => html`<${Fingerprints} all=${row.datasets} />` },
    { title: "Endpoints", isNumber: true, isWideOnly: true, cell: (row) => row.endpoints.length },
    { title: "Created", isWideOnly: true, cell: (row) => html`<${Time} at=${row.create_time} />` },
  ];
}

/**
 * Two versions: their metrics, and what else differs.
 * @param {{id: string, versions: string[]}} props - Two numbers, the older one first.
 */
function CompareVersions({ id, versions }) {
  const [one, other] = versions.map((each) => useLoad(`/local/models/${encodeURIComponent(id)}/${each}`));
  const pair = [one.data, other.data];
  const error = one.error ?? other.error;
  if (error || pair.some((each, index) => each?.version !== versions[index])) return html`<${Loaded} error=${error} />`;
  const metrics = pair.map(metricsOf);
  const rows = metricNames(metrics).map((name) => ({ name, values: metrics.map((each) => each[name]) }));
  const withoutRun = pair.filter((each) => !each.run).map((each) => each.version);
  const facts = pair.map((each) => factsOf(withoutRun.length ? { ...each, parameters: {} } : each));
  const differing = [...new Set(facts.flatMap(Object.keys))]
    .map((name) => ({ name, values: facts.map((each) => each[name]) }))
    .filter(({ values }) => JSON.stringify(values[0]) !== JSON.stringify(values[1]));
  const common = {
    of: versions.map((version) => ({ title: `Version ${version}` })),
    name: (/** @type {{name: string}} */ row) => row.name,
  };
  return html`
    ${
      rows.length
        ? html`<${Compared} ...${common} isNumber caption="Metrics of both versions" title="Metric" rows=${rows}
            cell=${(row, index) => figure(row.values[index])} more=${DIFFERENCE} />`
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
        ? html`<div class="breaking"><${Compared} ...${common} caption="What differs" title="Setting" rows=${differing}
            cell=${(row, index) => html`<${Value} value=${row.values[index]} />`} /></div>`
        : html`<p class="muted">No parameter, label or setting.</p>`
    }`;
}

/**
 * What a version was made of and is served by, by name.
 * @param {ModelVersion} version @returns {Record<string, any>}
 */
function factsOf(version) {
  const named = (/** @type {string} */ kind, /** @type {Record<string, any> | null | undefined} */ values) =>
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
