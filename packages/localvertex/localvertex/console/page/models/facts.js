// What all views show of versions: metrics, aliases, the run and the datasets.

import { Facts, figure, html, link } from "../ui/ui.js";

/** Metrics that come first where there is no room for all. */
const FIRST = [
  ...["accuracy", "baseline_accuracy", "auPrc", "auRoc", "f1Score", "macro_f1"],
  ...["logLoss", "loss", "rootMeanSquaredError"],
];

/**
 * The metrics of a version, from its newest evaluation, or from its run if it has no evaluation. Google's evaluation
 * schema has no field for the scores of a constant answer, so these always come from the run.
 * @param {any} row
 */
export function metricsOf({ metrics, run_metrics }) {
  if (!Object.keys(metrics).length) return run_metrics;
  const baselines = Object.entries(run_metrics).filter(([name]) => name.startsWith("baseline_"));
  return { ...metrics, ...Object.fromEntries(baselines) };
}

/** The names of metrics, the usual ones first. @param {Record<string, any>[]} all */
export function metricNames(all) {
  const names = [...new Set(all.flatMap((metrics) => Object.keys(metrics)))];
  const rank = (/** @type {string} */ name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return names.sort((one, other) => rank(one) - rank(other));
}

/** The names of metrics that are numbers. @param {Record<string, any>[]} all */
const numberNames = (all) => metricNames(all).filter((name) => all.some((each) => typeof each[name] === "number"));

/**
 * Columns of a table for the first metrics.
 * @param {Record<string, any>[]} all @param {(row: any) => Record<string, any>} of @param {number} most
 */
export const metricColumns = (all, of, most) =>
  numberNames(all)
    .slice(0, most)
    .map((name) => ({
      title: name,
      isNumber: true,
      isWideOnly: !["accuracy", "baseline_accuracy"].includes(name),
      cell: (/** @type {any} */ row) => figure(of(row)[name]),
    }));

/** The main metrics in large digits. @param {{metrics: Record<string, any>}} props */
export const Figures = ({ metrics }) => html`<${Facts} look="measures"
  facts=${numberNames([metrics])
    .slice(0, 12)
    .map((name) => [name, figure(metrics[name])])} />`;

/** @param {{names: string[]}} props */
export function Aliases({ names }) {
  return html`<span class="aliases">${names.map(
    (name) => html`<span key=${name} class="alias">${name}</span> `,
  )}</span>`;
}

const UNKNOWN = html`<span class="muted">not known</span>`;

/** @param {{id: string}} props */
export const Run = ({ id }) => (id ? html`<a href=${link(["runs", id])}>${id}</a>` : UNKNOWN);

/** The datasets by the beginnings of their fingerprints. @param {{all: string[]}} props */
export const Fingerprints = ({ all }) =>
  html`<div>${all.map(
    (each) => html`<div key=${each} class="mono" title=${each}>${each.slice(0, 12)}</div>`,
  )}${!all.length && UNKNOWN}</div>`;
