// The curves of a job: loss, accuracy, images per second and time left of one replica, and the last values of all.
import { clock, duration, figure, html, percent, Section, Select, Table, useMemo, useState } from "../ui/ui.js";
import { Chart } from "./plot.js";

/** @typedef {(number | null)[]} Point - Step, seconds since the epoch, and the figures. */
/** @typedef {{points: Point[], resumes: [number, number][]}} Curve */

/**
 * @typedef {object} Series
 * @property {number[]} times - Seconds from the start of the job, ascending.
 * @property {number[]} steps
 * @property {(number | null)[]} kept - The values of steps that count.
 * @property {(number | null)[]} lost - Values of steps that were trained again.
 */

/** Distances between the marks of an axis that shows seconds. */
const SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 864000];

const LOST = " Steps that a restart discarded are dashed.";

/** Index in a point of the seconds that are left. */
const LEFT = 5;

/** Points at the start of a process, which compiles: what they predict may be hours too long. */
const NUM_GUESSES = 3;

/**
 * Title, index in a point, and format of each figure; whether each process measures it separately.
 * @type {[string, number, (value: number) => string, boolean][]}
 */
const FIGURES = [
  ["Loss", 2, figure, false],
  ["Accuracy", 3, percent, false],
  ["Images per second", 4, figure, true],
  ["Time left", LEFT, duration, true],
];

/**
 * @param {{steps: Map<string, Curve>, start: number, names: string[]}} props - `start` of the job in seconds since the
 *   epoch; `names` of the replicas, the primary first.
 */
export function Curves({ steps, start, names }) {
  const drawn = names.filter((name) => steps.get(name)?.points.length);
  const [chosen, setChosen] = useState("");
  const name = drawn.includes(chosen) ? chosen : drawn[0];
  const curve = steps.get(name);
  const shown = useMemo(() => (curve ? figures(curve, start) : []), [curve, start]);
  // When a tuning job has ended, it has no replicas.
  if (!names.length) return null;
  if (!curve) return html`<p class="muted">No replica has logged training steps yet.</p>`;
  const resumes = curve.resumes.map(([time]) => time - start);
  const texts = curve.resumes.slice(-5).map(([time, step]) => `from step ${step} at ${duration(time - start)}`);
  const many = resumes.length > 5 ? `${resumes.length} times, last ` : "";
  const lost = shown.some(({ series }) => series.lost.some((value) => value !== null));
  const choice =
    drawn.length > 1 && html`<label>Replica <${Select} value=${name} choices=${drawn} onText=${setChosen} /></label>`;
  return html`<${Section} title="Training" actions=${choice}>
    ${resumes.length > 0 && html`<p class="muted">Resumed ${many}${texts.join(", ")}.${lost && LOST}</p>`}
    <div class="charts">
      ${shown.map((each) => html`<${Figure} key=${`${each.title} ${name}`} ...${each} resumes=${resumes} />`)}
    </div>
    <${LastValues} names=${drawn} steps=${steps} />
  <//>`;
}

/**
 * Return the figures that occur, each with its series. (A test reads them; a canvas cannot be read.)
 * @param {Curve} curve @param {number} start
 */
export function figures(curve, start) {
  const processes = withoutGuesses(ofProcesses(curve));
  // A line does not continue from one process to the next one.
  const parted = processes.flatMap((points, at) => (at ? [gap(processes[at - 1], points), ...points] : points));
  return FIGURES.filter(([, index]) => curve.points.some((point) => point[index] !== null)).map(
    ([title, index, format, isAnew]) => {
      const points = isAnew ? parted : curve.points;
      return { title, format, series: seriesOf(points, index, curve.resumes, start) };
    },
  );
}

/** @param {Point[]} points @param {number} index @param {[number, number][]} resumes @param {number} start */
function seriesOf(points, index, resumes, start) {
  const times = points.map((point) => Number(point[1]) - start);
  const steps = points.map((point) => Number(point[0]));
  const isLost = points.map(([step, time]) =>
    resumes.some(([resumed, from]) => Number(time) < resumed && Number(step) > from),
  );
  const values = points.map((point) => point[index]);
  const kept = values.map((value, at) => (isLost[at] ? null : value));
  // The dashed line begins where the other one ends.
  const lost = values.map((value, at) => (isLost[at] || isLost[at + 1] ? value : null));
  return { times, steps, kept, lost };
}

/** The points of each process that has any. @param {Curve} curve @returns {Point[][]} */
function ofProcesses({ points, resumes }) {
  const ends = [...resumes.map(([time]) => time), Number.POSITIVE_INFINITY];
  const isOf = (/** @type {Point} */ [, time], /** @type {number} */ at) =>
    Number(time) < ends[at] && Number(time) >= (ends[at - 1] ?? Number.NEGATIVE_INFINITY);
  return ends.map((_, at) => points.filter((point) => isOf(point, at))).filter((found) => found.length);
}

/** A point without figures between two processes. @param {Point[]} before @param {Point[]} after @returns {Point} */
function gap(before, after) {
  const [step, time] = /** @type {Point} */ (before.at(-1));
  return [step, (Number(time) + Number(after[0][1])) / 2, null, null, null, null];
}

/**
 * Leave out first predictions of the time left that are over twice as long as all later ones: they would rule the axis.
 * @param {Point[][]} processes @returns {Point[][]}
 */
function withoutGuesses(processes) {
  const later = processes.flatMap((points) => points.slice(NUM_GUESSES)).map((point) => Number(point[LEFT]));
  const most = later.length ? Math.max(...later) : Number.POSITIVE_INFINITY;
  const isGuess = (/** @type {Point} */ point, /** @type {number} */ at) =>
    at < NUM_GUESSES && Number(point[LEFT]) > 2 * most;
  return processes.map((points) => points.map((point, at) => (isGuess(point, at) ? point.with(LEFT, null) : point)));
}

/** The same as text. @param {{names: string[], steps: Map<string, Curve>}} props */
function LastValues({ names, steps }) {
  const rows = names.map((name) => ({ name, last: /** @type {Point} */ (steps.get(name)?.points.at(-1)) }));
  const cell =
    (/** @type {number} */ index, /** @type {(value: number) => string} */ format) =>
    (/** @type {any} */ { last }) =>
      last[index] === null ? "–" : format(last[index]);
  const columns = [
    { title: "Replica", cell: (/** @type {any} */ row) => row.name, isName: true },
    { title: "Step", cell: cell(0, String), isNumber: true },
    ...FIGURES.map(([title, index, format]) => ({ title, cell: cell(index, format), isNumber: true })),
  ];
  return html`<${Table} caption="Latest values of each replica" columns=${columns} rows=${rows} />`;
}

/**
 * One figure over the time of the job; what a restart has thrown away is dashed.
 * @param {{title: string, series: Series, resumes: number[], format: (value: number) => string}} props
 */
function Figure({ title, series: { times, steps, kept, lost }, resumes, format }) {
  const read = (/** @type {number | null} */ index) => {
    const at = index ?? kept.findLastIndex((value) => value !== null);
    const value = kept[at] ?? lost[at];
    const readout = value === null || value === undefined ? "–" : format(value);
    const where = at < 0 ? "" : `step ${steps[at]}, ${duration(times[at])}`;
    const shown = html`<strong>${readout}</strong> <span class="muted">${where}</span>`;
    return { at, shown, text: `${readout} at ${where || "no step yet"}` };
  };
  return html`<${Chart} title=${title} over="over time" read=${read} lines=${lines}
    data=${useMemo(() => [times, kept, lost], [times])} axes=${[axis(clock, true), axis(format, format === duration)]}
    onDraw=${(plot, colour) => drawResumes(plot, resumes, colour("--warn"))} />`;
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
