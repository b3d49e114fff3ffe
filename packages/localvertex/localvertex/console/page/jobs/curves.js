// The curves of training and validation: of one replica, or of several runs over each other, by time, step or epoch.
import {
  Check,
  clock,
  duration,
  figure,
  formatted,
  html,
  percent,
  Section,
  Select,
  useMemo,
  useState,
} from "../ui/ui.js";
import { Chart } from "./plot.js";

/** Distances between the marks of an axis that shows seconds. */
const SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 864000];

/** The figures that are shown at once, and those that each process measures anew. */
const FIRST = ["loss", "accuracy", "score", "learning_rate", "images_per_second", "seconds_left"];
const ANEW = ["images_per_second", "seconds_left"];

const LEFT = "seconds_left";

/** Points at the start of a process, which compiles: what they predict may be hours too long. */
const NUM_GUESSES = 3;

const AXES = ["time", "step", "epoch"];

const SMOOTHING = ["0", "0.6", "0.9", "0.97"];

/** @param {string} name */
const titleOf = (name) => (name === LEFT ? "Time left" : name[0].toUpperCase() + name.slice(1).replaceAll("_", " "));

/** @param {string} name @returns {(value: number) => string} */
const formatOf = (name) => (/seconds(_left)?$/.test(name) ? duration : /accuracy|score/.test(name) ? percent : figure);

/**
 * The lines of a figure; `lost` by time alone. (A test reads them; a canvas cannot be read.)
 * @param {Source} source @param {string} name @param {string} axis
 */
export function linesOf({ curve: { names, points, evaluated, resumes }, start }, name, axis) {
  const column = (/** @type {string} */ of) => (/** @type {Point} */ point) =>
    names.includes(of) ? (point[names.indexOf(of) + 2] ?? null) : null;
  const x = /** @type {Record<string, (point: Point) => any>} */ ({
    time: (point) => Number(point[1]) - start,
    step: (point) => point[0],
    epoch: column("epoch"),
  })[axis];
  const value = column(name);
  const isLost = points.map(([step, time]) => resumes.some(([at, from]) => Number(time) < at && Number(step) > from));
  const processes = points.map(([, time]) => resumes.filter(([at]) => Number(time) >= at).length);
  const isGuess = guesses(points.map(value), processes, name);
  const [kept, lost] = [/** @type {Pairs} */ ([]), /** @type {Pairs} */ ([])];
  for (const [index, point] of points.entries()) {
    const at = x(point);
    if (at === null || (isLost[index] && axis !== "time")) continue;
    if (axis === "time" && ANEW.includes(name) && index && processes[index] !== processes[index - 1])
      kept.push([(x(points[index - 1]) + at) / 2, null]);
    const shown = isGuess[index] ? null : value(point);
    kept.push([at, isLost[index] ? null : shown]);
    // The dashed line begins where the other one ends.
    if (axis === "time") lost.push([at, isLost[index] || isLost[index + 1] ? shown : null]);
  }
  const evaluatedX = axis === "epoch" ? column("validation_epoch") : x;
  const all = evaluated.map(
    (point) => /** @type {[any, any]} */ ([evaluatedX(point), column(`validation_${name}`)(point)]),
  );
  return { kept, lost, validation: all.filter(([at, shown]) => at !== null && shown !== null) };
}

/**
 * First predictions of the time left that are over twice as long as all later ones: they would rule the axis.
 * @param {(number | null)[]} values @param {number[]} processes @param {string} name
 */
function guesses(values, processes, name) {
  const isEarly = processes.map((each, index) => each !== processes[index - NUM_GUESSES]);
  const later = values.filter((_, index) => !isEarly[index]).map(Number);
  const most = name === LEFT && later.length ? Math.max(...later) : Number.POSITIVE_INFINITY;
  return values.map((value, index) => isEarly[index] && Number(value) > 2 * most);
}

/** An exponential mean, each value with the weight of those before it. @param {Pairs} pairs @param {number} weight */
export function smoothed(pairs, weight) {
  let [sum, total] = [0, 0];
  return pairs.map(([x, value]) => {
    if (value === null || value === undefined) return [x, value];
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + 1 - weight;
    return [x, sum / total];
  });
}

/**
 * The newest value at or before an index of the values of a line.
 * @param {(number | null | undefined)[]} values @param {number} index
 */
const valueAt = (values, index) =>
  /** @type {number | undefined} */ (values.findLast((each, at) => at <= index && typeof each === "number"));

/** @param {ChartsProps} props */
export function Charts({ title, sources, axis: first, actions, only, children }) {
  const [axis, setAxis] = useState(first);
  const [smoothing, setSmoothing] = useState("0");
  const [isLog, setIsLog] = useState(false);
  const known = new Set(sources.flatMap(({ curve }) => curve.names.map((name) => name.replace(/^validation_/, ""))));
  known.delete("epoch");
  const [isWhole, setIsWhole] = useState(!FIRST.some((name) => known.has(name)));
  const names = [...new Set([...FIRST, ...known])].filter((name) => known.has(name) && (!only || name === only));
  const shown = names.filter((name) => isWhole || FIRST.includes(name));
  const of = { sources, axis, smoothing: Number(smoothing), isLog };
  const charts = html`<div class="charts">
    ${shown.map((name) => html`<${Figure} key=${[name, axis, smoothing, isLog].join()} name=${name} ...${of} />`)}
  </div>`;
  if (only) return charts;
  return html`<${Section} title=${title} actions=${actions}>
    <div class="toolbar">
      <label>by <${Select} value=${axis} choices=${AXES} onText=${setAxis} /></label>
      <label>smoothed <${Select} value=${smoothing} choices=${SMOOTHING} onText=${setSmoothing} /></label>
      <${Check} title="Log scale" isOn=${isLog} onTurn=${setIsLog} />
      <${Check} title="All figures" isOn=${isWhole} onTurn=${setIsWhole} />
      <span class="small muted">Drag to zoom, double-click for all.</span>
    </div>
    ${charts}${children}
  <//>`;
}

/** @param {FigureProps} props */
function Figure({ name, sources, axis, smoothing, isLog }) {
  const format = formatOf(name);
  const { data, isEmpty } = useMemo(() => {
    const lines = sources.flatMap((source) => {
      const { kept, lost, validation } = linesOf(source, name, axis);
      return [smoothing ? smoothed(kept, smoothing) : kept, smoothing ? kept : [], lost, validation];
    });
    const xs = [...new Set(lines.flatMap((pairs) => pairs.map(([x]) => x)))].sort((one, other) => one - other);
    const values = lines.map((pairs) => {
      const found = new Map(/** @type {any} */ (pairs));
      // A value that is missing is no gap, unlike null.
      return xs.map((x) => (isLog && found.get(x) <= 0 ? undefined : found.get(x)));
    });
    return { data: [xs, ...values], isEmpty: !values.flat().some((each) => typeof each === "number") };
  }, [axis, name, smoothing, isLog, ...sources.map(({ curve }) => curve)]);
  if (isEmpty) return null;
  const [xs, ...values] = data;
  const isTime = axis === "time";
  const read = (/** @type {number | null} */ index) => {
    const at = index ?? xs.length - 1;
    const found = sources.map((source, number) => {
      const [kept, , lost, validation] = values.slice(4 * number, 4 * number + 4).map((each) => valueAt(each, at));
      const value = formatted(kept ?? lost, format);
      return { ...source, value, validation: validation === undefined ? "" : format(validation) };
    });
    const where = isTime ? duration(xs[at]) : `${axis} ${figure(xs[at])}`;
    const shown = html`${found.map(
      ({ mark, value, validation }, number) => html`<span key=${number}>${mark}
      ${!mark && html`<span class="muted">${validation ? "training " : index === null && "newest "}</span>`}
      <strong>${value}</strong>
      ${validation && html`<span class="muted"> validation </span><strong>${validation}</strong>`}</span>`,
    )}
      ${" "}<span class="muted">at ${where}</span>`;
    const texts = found.map(
      ({ spoken = "", value, validation }) => `${spoken}${value}${validation && `, validation ${validation}`}`,
    );
    return { at, shown, text: `${texts.join(", ")} at ${where}` };
  };
  const resumes = sources.flatMap(({ curve, colour, start }) =>
    isTime && !colour ? curve.resumes.map(([time]) => time - start) : (curve.marks ?? []).flatMap((each) => each ?? []),
  );
  return html`<${Chart} title=${titleOf(name)} over=${`by ${axis}`} read=${read}
    data=${data} isLog=${isLog}
    lines=${(/** @type {Colour} */ colour) => sources.flatMap((each) => looks(each, colour, smoothing > 0))}
    axes=${[isTime ? clock : figure, format].map(axisOf)}
    onDraw=${(plot, colour) => drawResumes(plot, resumes, colour("--warn"))} />`;
}

/**
 * How the lines of a source are drawn: the values, those that are smoothed, lost values, and validation.
 * @param {Source} source @param {Colour} colour @param {boolean} isSmoothed
 */
function looks({ colour: own, dash }, colour, isSmoothed) {
  const stroke = colour(own ?? "--accent");
  return [
    { stroke, width: 2, dash, ...(isSmoothed && { points: { show: false } }) },
    { stroke: `${stroke}55`, width: 1, points: { show: false } },
    { stroke: own ? `${stroke}99` : colour("--bad"), width: 1.5, dash: [4, 3], points: { show: false } },
    { stroke: own ? stroke : colour("--good"), width: 1.5, dash: [2, 3], points: { show: true, size: 4 } },
  ];
}

/** How the marks of an axis are written. @param {(value: number) => string} format */
const axisOf = (format) => ({
  values: (/** @type {UPlot} */ _, /** @type {(number | null)[]} */ found) =>
    found.map((each) => (each === null ? "" : format(each))),
  ...([clock, duration].includes(format) && { incrs: SECONDS }),
});

/** @param {JobCurvesProps} props */
export function Curves({ steps, start, names, only }) {
  const drawn = names.filter((name) => steps.get(name)?.points.length);
  const [chosen, setChosen] = useState("");
  const name = drawn.includes(chosen) ? chosen : drawn[0];
  const curve = steps.get(name);
  // When a tuning job has ended, it has no replicas.
  if (!names.length || (only && !curve)) return null;
  if (!curve) return html`<p class="muted">No replica has logged training steps yet.</p>`;
  const texts = curve.resumes.slice(-5).map(([time, step]) => `from step ${step} at ${duration(time - start)}`);
  const many = curve.resumes.length > 5 ? `${curve.resumes.length} times, last ` : "";
  const choice =
    drawn.length > 1 && html`<label>Replica <${Select} value=${name} choices=${drawn} onText=${setChosen} /></label>`;
  return html`<${Charts} key=${name} title="Training" actions=${choice} axis="time" only=${only}
      sources=${[{ curve, start }]}>
    ${
      texts.length > 0 &&
      html`<p class="muted">Resumed ${many}${texts.join(", ")}. By time, steps that a restart discarded are dashed.</p>`
    }
  <//>`;
}

/** A vertical line wherever a process resumed. @param {UPlot} plot @param {number[]} resumes @param {string} colour */
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
