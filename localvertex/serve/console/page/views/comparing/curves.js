// The training curves of runs over each other, by step.
import { html, useEffect, useMemo, useRef, useState } from "../../html.js";
import { useLoad } from "../../load.js";
import { Section } from "../../ui/page.js";
import { Problem } from "../../ui/problem.js";
import UPlot from "../../vendor/uplot.js";
import { number } from "./format.js";
import { Letter, letter } from "./letters.js";

const HEIGHT = 220;

/** The figures with their places in a point: `[step, time, loss, accuracy, images per second, seconds left]`. */
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
      ${FIGURES.map((figure) => html`<${Figure} key=${figure.title} runs=${runs} series=${series} figure=${figure} />`)}
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
function aligned(series, place) {
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

/** @param {{runs: any[], series: any[], figure: typeof FIGURES[number]}} props */
function Figure({ runs, series, figure }) {
  const data = useMemo(() => aligned(series, figure.place), [series]);
  const [index, setIndex] = useState(/** @type {number | null} */ (null));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => draw(/** @type {HTMLElement} */ (box.current), data, setIndex), [data]);
  if (!data.values.some((each) => each.some((value) => value !== null))) return null;
  const format = (/** @type {number | null} */ value) => (value === null ? "–" : number(value));
  const at = (/** @type {(number | null)[]} */ values) =>
    index === null ? (values.findLast((value) => value !== null) ?? null) : values[index];
  const shown = data.values.map(at);
  const label = runs.map((_, place) => `run ${letter(place)} ${format(shown[place])}`).join(", ");
  return html`<figure class="curve">
    <figcaption>
      <h3>${figure.title}</h3>
      <span class="readout">
        ${shown.map((value, place) => html`<span key=${place}><${Letter} index=${place} /> ${format(value)}</span>`)}
        <span class="muted">${index === null ? "last" : `step ${data.steps[index]}`}</span>
      </span>
    </figcaption>
    <div ref=${box} role="img" aria-label=${`${figure.title} by step; last: ${label}`}></div>
  </figure>`;
}

/**
 * Draw into an element, again when its width or the colour scheme changes.
 * @param {HTMLElement | null} element
 * @param {{steps: number[], values: (number | null)[][]}} data
 * @param {(index: number | null) => void} onHover
 */
function draw(element, data, onHover) {
  if (!element) return;
  /** @type {any} */
  let plot = null;
  const redraw = () => {
    plot?.destroy();
    plot = new UPlot(
      options(element, data.values.length, onHover),
      /** @type {any} */ ([data.steps, ...data.values]),
      element,
    );
  };
  redraw();
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const sizes = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
  sizes.observe(element);
  scheme.addEventListener("change", redraw);
  return () => {
    sizes.disconnect();
    scheme.removeEventListener("change", redraw);
    plot.destroy();
  };
}

/** @param {HTMLElement} element @param {number} count @param {(index: number | null) => void} onHover @returns {any} */
function options(element, count, onHover) {
  const style = getComputedStyle(element);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--muted"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const series = Array.from({ length: count }, (_, index) => ({
    stroke: colour(`--run-${index}`),
    width: 2,
    spanGaps: true,
    // Dashes and letters distinguish curves without their colours.
    dash: [[], [8, 4], [2, 3], [12, 4, 2, 4]][index % 4],
    points: { show: (/** @type {any} */ plot) => plot.data[0].length < 30 },
  }));
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: false } },
    axes: [
      { ...axis, size: 28 },
      { ...axis, size: 56 },
    ],
    series: [{}, ...series],
    hooks: { setCursor: [(/** @type {any} */ plot) => onHover(plot.cursor.left < 0 ? null : plot.cursor.idx)] },
  };
}
