// The training curves of runs over each other, by step.

import { Chart } from "../jobs/plot.js";
import { useLoad } from "../server/server.js";
import { figure, html, Problem, Section, useMemo } from "../ui/ui.js";
import { Letter, letter } from "./letters.js";

/** The charts, with the place of each value in a point (jobs/curves.py). @type {[string, number][]} */
const FIGURES = [
  ["Loss", 2],
  ["Accuracy", 3],
  ["Images per second", 4],
];

/** @param {{runs: any[], steps: any[], query: URLSearchParams}} props */
export function Curves({ runs, steps, query }) {
  const { data, error, reload } = useLoad(`/local/compare/curves?${query}`);
  if (error) return html`<${Problem} title="The curves cannot be read" error=${error} onRetry=${reload} />`;
  /** @type {{task: string, series: any[]}[]} */
  const curves = data?.curves ?? [];
  return curves
    .filter(({ series }) => series.some(Boolean))
    .map(({ task, series }) => {
      const title = steps.find((each) => each.path === task)?.title ?? task;
      return html`<${Section} key=${task} title=${html`Curves of <bdi>${title}</bdi>`}>
        <div class="charts">
          ${FIGURES.map(
            ([title, place]) =>
              html`<${Curve} key=${title} runs=${runs} series=${series} title=${title} place=${place} />`,
          )}
        </div>
      <//>`;
    });
}

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

/** @param {{runs: any[], series: any[], title: string, place: number}} props */
function Curve({ runs, series, title, place }) {
  const data = useMemo(() => atSteps(series, place), [series]);
  const [steps, ...values] = data;
  if (!values.some((each) => each.some((value) => value !== null))) return null;
  const read = (/** @type {number | null} */ index) => {
    const shown = values.map((each) => figure(index === null ? each.findLast((value) => value !== null) : each[index]));
    const where = index === null ? "last" : `step ${steps[index]}`;
    const text = runs.map((_, run) => `run ${letter(run)} ${shown[run]}`).join(", ");
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
