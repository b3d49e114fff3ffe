// What all views show of versions: metrics, aliases, the run and the datasets.

import { Facts, figure, html, link, metricNames } from "../ui/ui.js";

/**
 * The metrics of a version, from its newest evaluation, or from its run if it has no evaluation. Google's evaluation
 * schema has no field for the scores of a constant answer, so these come from the run. With one prediction per example,
 * its averages over all examples are the accuracy; those over the classes come from the run, too.
 * @param {VersionMetrics} version @returns {Record<string, any>}
 */
export function metricsOf({ metrics, run_metrics }) {
  const found = { ...metrics };
  if (!Object.keys(found).length) return run_metrics;
  const averages = ["precision", "recall", "f1Score"];
  if (averages.every((name) => found[name] === found.accuracy)) for (const name of averages) delete found[name];
  for (const name of Object.keys(run_metrics))
    if (/^(baseline|macro|balanced)_/.test(name)) found[name] ??= run_metrics[name];
  return found;
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

/** The main metrics in large digits. @param {FiguresProps} props */
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
