// The training curves of runs over each other, by step.

import { Chart } from "../jobs/plot.js";
import { figure, html, Section, useMemo } from "../ui/ui.js";
import { Letter, letter } from "./letters.js";

/** The charts, with the place of each value in a point (show/view/curves.py). @type {[string, number][]} */
const FIGURES = [
  ["Loss", 2],
  ["Accuracy", 3],
  ["Images per second", 4],
];

/** @param {{steps: any[], curves: {task: string, series: any[]}[]}} props */
export const Curves = ({ steps, curves }) =>
  curves
    .filter(({ series }) => series.some(Boolean))
    .map(({ task, series }) => {
      const title = steps.find((each) => each.path === task)?.title ?? task;
      return html`<${Section} key=${task} title=${html`Curves of <bdi>${title}</bdi>`}>
        <div class="charts">
          ${FIGURES.map(
            ([title, place]) => html`<${Curve} key=${title} series=${series} title=${title} place=${place} />`,
          )}
        </div>
      <//>`;
    });

/**
 * The steps of all runs, then the values of each; what a restart has thrown away is left out.
 * @param {any[]} series
 * @param {number} place
 * @returns {any[][]}
 */
function atSteps(series, place) {
  const found = series.map((each) => {
    const kept = (each?.points ?? []).filter(
      (/** @type {any} */ [step, time]) =>
        !each.resumes.some((/** @type {any} */ [at, from]) => time <= at && step > from),
    );
    return new Map(kept.map((/** @type {any} */ point) => [point[0], point[place]]));
  });
  const steps = [...new Set(found.flatMap((each) => [...each.keys()]))].sort((one, other) => one - other);
  return [steps, ...found.map((each) => steps.map((step) => each.get(step) ?? null))];
}

/** @param {{series: any[], title: string, place: number}} props */
function Curve({ series, title, place }) {
  const data = useMemo(() => atSteps(series, place), [series]);
  const [steps, ...values] = data;
  if (!values.some((each) => each.some((value) => value !== null))) return null;
  const read = (/** @type {number | null} */ index) => {
    const shown = values.map((each) => figure(index === null ? each.findLast((value) => value !== null) : each[index]));
    const where = index === null ? "last" : `step ${steps[index]}`;
    const text = series.map((_, run) => `run ${letter(run)} ${shown[run]}`).join(", ");
    const readout = html`${shown.map((value, run) => html`<span key=${run}><${Letter} index=${run} /> ${value}</span>`)}
      <span class="muted">${where}</span>`;
    return { at: index ?? steps.length - 1, shown: readout, text: `${where}: ${text}` };
  };
  return html`<${Chart} title=${title} over="by step" data=${data} lines=${lines(values.length)} read=${read} />`;
}

/** @param {number} count */
const lines = (count) => (/** @type {import("../jobs/plot.js").Colour} */ colour) =>
  Array.from({ length: count }, (_, index) => ({
    stroke: colour(`--run-${index}`),
    width: 2,
    spanGaps: true,
    // Dashes and letters distinguish curves without their colours.
    dash: [[], [8, 4], [2, 3], [12, 4, 2, 4]][index % 4],
  }));
