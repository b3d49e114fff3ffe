// The versions of a model side by side, and what all views show of versions.

import { link } from "../routes.js";
import { figure, html, Section, Table, Time, useState } from "../ui/ui.js";
import { CompareVersions } from "./compare_versions.js";

const NUM_SHOWN = 25;

/** Metrics that come first where there is no room for all. */
const FIRST = [
  ...["accuracy", "baseline_accuracy", "auPrc", "auRoc", "f1Score", "macro_f1"],
  ...["logLoss", "loss", "rootMeanSquaredError"],
];

/**
 * The metrics of a version: those of its newest evaluation, or of its run if it has no evaluation. Google's evaluation
 * schema has no field for the scores of a constant answer, so these always come from the run.
 * @param {any} row
 */
export const metricsOf = (row) =>
  Object.keys(row.metrics).length ? { ...row.metrics, ...baselines(row.run_metrics) } : row.run_metrics;

/** @param {Record<string, any>} metrics */
const baselines = (metrics) =>
  Object.fromEntries(Object.entries(metrics).filter(([name]) => name.startsWith("baseline_")));

/** The names of metrics, the usual ones first. @param {Record<string, any>[]} all */
export function metricNames(all) {
  const names = [...new Set(all.flatMap((metrics) => Object.keys(metrics)))];
  const rank = (/** @type {string} */ name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return names.sort((one, other) => rank(one) - rank(other));
}

/**
 * Columns of a table for the first metrics.
 * @param {Record<string, any>[]} all @param {(row: any) => Record<string, any>} of @param {number} most
 */
export const metricColumns = (all, of, most) =>
  metricNames(all.map(numbersIn))
    .slice(0, most)
    .map((name) => ({
      title: name,
      isNumber: true,
      isWideOnly: !["accuracy", "baseline_accuracy"].includes(name),
      cell: (/** @type {any} */ row) => figure(of(row)[name]),
    }));

/** @param {Record<string, any>} metrics */
const numbersIn = (metrics) =>
  Object.fromEntries(Object.entries(metrics).filter(([, each]) => typeof each === "number"));

/** The aliases of a version. @param {{names: string[]}} props */
export function Aliases({ names }) {
  return html`<span class="aliases">${names.map(
    (name) => html`<span key=${name} class="alias">${name}</span> `,
  )}</span>`;
}

/** @param {{model: any}} props - The answer of `/local/models/ID/VERSION`. */
export function Versions({ model }) {
  const [isWhole, setIsWhole] = useState(false);
  const [selected, setSelected] = useState(/** @type {string[]} */ ([]));
  const rows = isWhole ? model.versions : model.versions.slice(0, NUM_SHOWN);
  const select = (/** @type {string} */ key, /** @type {boolean} */ isOn) =>
    setSelected(isOn ? [...selected, key].slice(-2) : selected.filter((each) => each !== key));
  const [one, other] = [...selected].sort((left, right) => Number(left) - Number(right));
  return html`
    <p class="muted">
      Metrics of the newest evaluation; without one, those of the run. Select two versions to compare.
    </p>
    <${Table} caption="Versions" columns=${columnsOf(model)} rows=${rows}
        keyOf=${(/** @type {any} */ row) => row.version}
      nameOf=${(/** @type {any} */ row) => `version ${row.version}`} selected=${new Set(selected)} onSelect=${select} />
    ${
      rows.length < model.versions.length &&
      html`<p class="show-more"><button
          onClick=${() => setIsWhole(true)}>Show all ${model.versions.length} versions</button></p>`
    }
    ${
      other &&
      html`<${Section} title=${`Version ${one} and version ${other}`}>
        <${CompareVersions} id=${model.id} versions=${[one, other]} />
      <//>`
    }`;
}

/** @param {any} model @returns {import("../ui/table.js").Column[]} */
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

/** A link to a run. @param {{id: string}} props */
export function Run({ id }) {
  return id ? html`<a href=${link(["runs", id])}>${id}</a>` : html`<span class="muted">not known</span>`;
}

/** Links to datasets by their fingerprints. @param {{all: string[]}} props */
export function Fingerprints({ all }) {
  if (!all.length) return html`<span class="muted">not known</span>`;
  return all.map(
    (each) =>
      html`<div key=${each}><a class="mono"
          href=${link(["datasets"], { dataset: each })}>${each.slice(0, 12)}</a></div>`,
  );
}
