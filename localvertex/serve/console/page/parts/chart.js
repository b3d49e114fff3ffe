// One figure over the time of the job, drawn by uPlot; what a restart has thrown away is dashed.
import { html, useEffect, useRef, useState } from "../html.js";
import { clock, duration } from "../ui/time.js";
import UPlot from "../vendor/uplot.js";

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
  const box = usePlot({ series, resumes, format, isTime, onHover: setIndex });
  return html`<figure class="chart">
    <figcaption>
      <h3>${title}</h3>
      <span><strong>${readout}</strong> <span class="muted">${where}</span></span>
    </figcaption>
    <div ref=${box} role="img" aria-label=${`${title} over time, last ${readout} at ${where || "no step yet"}`}></div>
  </figure>`;
}

/**
 * Draw into an element, again when its width or the colour scheme changes.
 * @param {{series: Series, resumes: number[], format: (value: number) => string, isTime: boolean,
 *   onHover: (index: number | null) => void}} props
 */
function usePlot(props) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const newest = useRef(props);
  newest.current = props;
  const { series } = props;
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (box.current);
    const draw = () => {
      plot.current?.destroy();
      plot.current = new UPlot(options(element, newest), data(newest.current.series), element);
    };
    draw();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const sizes = new ResizeObserver(() => plot.current.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    scheme.addEventListener("change", draw);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener("change", draw);
      plot.current.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(data(series)), [series]);
  return box;
}

/** @param {Series} series */
const data = ({ times, kept, lost }) => /** @type {any} */ ([times, kept, lost]);

/**
 * @param {HTMLElement} element
 * @param {{current: any}} newest - The present props.
 * @returns {any}
 */
function options(element, newest) {
  const style = getComputedStyle(element);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--muted"), grid, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const { format, isTime } = newest.current;
  const values =
    (/** @type {(value: number) => string} */ shown) => (/** @type {any} */ _, /** @type {number[]} */ found) =>
      found.map(shown);
  const line = { spanGaps: false, points: { show: points } };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: false } },
    axes: [
      { ...axis, size: 28, values: values(clock), incrs: SECONDS },
      { ...axis, size: 56, values: values(isTime ? clock : format), ...(isTime && { incrs: SECONDS }) },
    ],
    series: [
      {},
      { ...line, stroke: colour("--accent"), width: 2 },
      { ...line, stroke: colour("--bad"), width: 1.5, dash: [4, 3] },
    ],
    hooks: {
      draw: [(/** @type {any} */ plot) => drawResumes(plot, newest.current.resumes, colour("--warn"))],
      setCursor: [(/** @type {any} */ plot) => newest.current.onHover(plot.cursor.left < 0 ? null : plot.cursor.idx)],
    },
  };
}

/** Points are shown while they are few. @param {any} plot */
const points = (plot) => plot.data[0].length < 40;

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
