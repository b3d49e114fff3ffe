// One figure over the time of the job, drawn by uPlot; what a restart has thrown away is dashed.

import { clock, duration, html, useMemo, useState } from "../ui/ui.js";
import { usePlot } from "./plot.js";

const HEIGHT = 180;

/** Distances between the marks of an axis that shows seconds. */
const SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 864000];

/**
 * @typedef {object} Series
 * @property {number[]} times - Seconds from the start of the job, ascending.
 * @property {number[]} steps
 * @property {(number | null)[]} kept - The values of steps that count.
 * @property {(number | null)[]} lost - Those of steps that were trained again.
 */

/**
 * @param {object} props
 * @param {string} props.title
 * @param {Series} props.series
 * @param {number[]} props.resumes - Seconds at which a process resumed.
 * @param {(value: number) => string} props.format
 * @param {boolean} props.isTime - Whether the values are seconds.
 */
export function Chart({ title, series, resumes, format, isTime }) {
  const [index, setIndex] = useState(/** @type {number | null} */ (null));
  const last = series.kept.findLastIndex((value) => value !== null);
  const shown = index ?? last;
  const value = series.kept[shown] ?? series.lost[shown];
  const readout = value === null || value === undefined ? "–" : format(value);
  const where = shown < 0 ? "" : `step ${series.steps[shown]}, ${duration(series.times[shown])}`;
  const box = usePlot({
    data: useMemo(() => [series.times, series.kept, series.lost], [series]),
    height: HEIGHT,
    lines,
    axes: [axis(clock, true), axis(format, isTime)],
    onHover: setIndex,
    onDraw: (plot, colour) => drawResumes(plot, resumes, colour("--warn")),
  });
  return html`<figure class="chart">
    <figcaption>
      <h3>${title}</h3>
      <span><strong>${readout}</strong> <span class="muted">${where}</span></span>
    </figcaption>
    <div ref=${box} class="plot" role="slider" tabindex="0" aria-label=${`${title} over time`} aria-valuemin="0"
      aria-valuemax=${Math.max(0, series.times.length - 1)} aria-valuenow=${Math.max(0, shown)}
      aria-valuetext=${`${readout} at ${where || "no step yet"}`}></div>
  </figure>`;
}

/** @param {import("./plot.js").Colour} colour */
const lines = (colour) => [
  { stroke: colour("--accent"), width: 2 },
  { stroke: colour("--bad"), width: 1.5, dash: [4, 3] },
];

/**
 * How the marks of an axis are written.
 * @param {(value: number) => string} format
 * @param {boolean} isTime
 */
const axis = (format, isTime) => ({
  values: (/** @type {any} */ _, /** @type {number[]} */ found) => found.map(isTime ? clock : format),
  ...(isTime && { incrs: SECONDS }),
});

/** A vertical line wherever a process resumed. @param {any} plot @param {number[]} resumes @param {string} colour */
function drawResumes(plot, resumes, colour) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const each of resumes) {
    const x = plot.valToPos(each, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
