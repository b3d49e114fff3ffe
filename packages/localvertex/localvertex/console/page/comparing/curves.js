// The training curves of runs over each other, by step.

import { usePlot } from "../jobs/plot.js";
import { useLoad } from "../server/load.js";
import { figure, html, Problem, Section, useMemo, useState } from "../ui/ui.js";
import { Letter, letter } from "./letters.js";

const HEIGHT = 220;

/** The charts, with the place of each value in a point (jobs/curves.py). */
const FIGURES = [
  { title: "Loss", place: 2 },
  { title: "Accuracy", place: 3 },
  { title: "Images per second", place: 4 },
];

/** @param {{runs: any[], steps: any[], query: URLSearchParams}} props */
export function Curves({ runs, steps, query }) {
  const { data, error, reload } = useLoad(`/local/compare/curves?${query}`);
  if (error) return html`<${Problem} title="The curves cannot be read" error=${error} onRetry=${reload} />`;
  const curves = (data?.curves ?? []).filter((/** @type {any} */ each) => each.series.some(Boolean));
  const titleOf = (/** @type {string} */ task) => steps.find((each) => each.path === task)?.title ?? task;
  return curves.map(
    (
      /** @type {any} */ { task, series },
    ) => html`<${Section} key=${task} title=${html`Curves of <bdi>${titleOf(task)}</bdi>`}>
    <div class="curves">
      ${FIGURES.map(
        ({ title, place }) =>
          html`<${Chart} key=${title} runs=${runs} series=${series} title=${title} place=${place} />`,
      )}
    </div>
  <//>`,
  );
}

/**
 * The values of each run at the steps of all runs; what a restart has thrown away is left out.
 * @param {any[]} series
 * @param {number} place
 * @returns {{steps: number[], values: (number | null)[][]}}
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
  return { steps, values: found.map((each) => steps.map((step) => each.get(step) ?? null)) };
}

/** @param {{runs: any[], series: any[], title: string, place: number}} props */
function Chart({ runs, series, title, place }) {
  const aligned = useMemo(() => atSteps(series, place), [series]);
  if (!aligned.values.some((each) => each.some((value) => value !== null))) return null;
  return html`<${Curve} runs=${runs} title=${title} steps=${aligned.steps} values=${aligned.values} />`;
}

/** @param {{runs: any[], title: string, steps: number[], values: (number | null)[][]}} props */
function Curve({ runs, title, steps, values }) {
  const [index, setIndex] = useState(/** @type {number | null} */ (null));
  const data = useMemo(() => [steps, ...values], [steps, values]);
  const box = usePlot({ data, height: HEIGHT, lines: lines(values.length), onHover: setIndex });
  const shown = values.map((each) => (index === null ? each.findLast((value) => value !== null) : each[index]));
  const label = runs.map((_, place) => `run ${letter(place)} ${figure(shown[place])}`).join(", ");
  return html`<figure class="curve">
    <figcaption>
      <h3>${title}</h3>
      <span class="readout">
        ${shown.map((value, place) => html`<span key=${place}><${Letter} index=${place} /> ${figure(value)}</span>`)}
        <span class="muted">${index === null ? "last" : `step ${steps[index]}`}</span>
      </span>
    </figcaption>
    <div ref=${box} role="slider" tabindex="0" aria-label=${`${title} by step`} aria-valuemin="0"
      aria-valuemax=${steps.length - 1} aria-valuenow=${index ?? steps.length - 1}
      aria-valuetext=${`${index === null ? "last" : `step ${steps[index]}`}: ${label}`}></div>
  </figure>`;
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
