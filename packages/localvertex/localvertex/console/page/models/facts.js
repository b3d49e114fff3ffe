// What all views show of versions: metrics, aliases, the run and the datasets.

import { link } from "../ui/address.js";
import { figure, html } from "../ui/ui.js";

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
