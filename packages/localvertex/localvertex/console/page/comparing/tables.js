// Parameters, metrics and steps: a column for each run; what is the same in all runs is folded.

import { Compared, Duration, figure, html, link, Name, NONE, plural, Section, State, signed, Value } from "../ui/ui.js";
import { Letter, letter } from "./letters.js";

/** @param {ComparedRun[]} runs */
const lettered = (runs) =>
  runs.map((_, index) => ({ title: letter(index), heading: html`<${Letter} index=${index} />` }));

/** @param {ComparisonProps<ParameterRow>} props */
export function Parameters({ runs, rows }) {
  const differing = rows.filter((row) => row.differs);
  const equal = rows.filter((row) => !row.differs);
  const none = rows.length ? "No parameter differs." : "The runs have no parameters.";
  return html`<${Section} title="Parameters">
    ${differing.length === 0 && html`<p class="muted">${none}</p>`}
    ${
      differing.length > 0 &&
      html`<${Compared} caption="Parameters that differ" of=${lettered(runs)} name=${nameOf} cell=${parameter}
        rows=${differing} />`
    }
    ${
      equal.length > 0 &&
      html`<details class="equal">
        <summary>${plural(equal.length, "equal parameter")}</summary>
        <${Compared} caption="Parameters that are equal" of=${[{ title: "All runs" }]} name=${nameOf} cell=${parameter}
          rows=${equal} />
      </details>`
    }
  <//>`;
}

/** @param {{name: string}} row */
const nameOf = (row) => html`<${Name} text=${row.name} />`;

/** @param {ParameterRow} row @param {number} index */
function parameter(row, index) {
  const { is_set, value } = row.values[index];
  if (!is_set) return html`<span class="muted">not set</span>`;
  return html`<${Value} value=${value === "" ? '""' : value} />`;
}

/** Metrics; differences are from the run `base`. @param {ComparisonProps<MetricRow> & {base: number}} props */
export function Metrics({ runs, rows, base }) {
  if (rows.length === 0) return null;
  const tasks = new Set(rows.map((row) => row.task));
  const name = (/** @type {MetricRow} */ row) => html`<${Name} text=${row.name} />
    ${tasks.size > 1 && html`<div class="small muted" title=${row.task}><bdi>${row.title}</bdi></div>`}`;
  const cell = (/** @type {MetricRow} */ row, /** @type {number} */ index) => {
    const [value, difference] = [row.values[index], row.differences[index]];
    if (value === null) return NONE;
    const isBest = row.best.includes(index);
    if (typeof value !== "number") return html`<span class="text">${String(value)}</span>`;
    return html`<span class=${isBest ? "best" : ""}>${figure(value)}</span>
      <div class="small muted">
        ${isBest && html`<span class="tag best">best</span>`}${difference !== null && signed(difference)}
      </div>`;
  };
  return html`<${Section} title="Metrics">
    <${Compared} isNumber caption=${`Metrics; differences are from run ${letter(base)}`}
      of=${lettered(runs)} name=${name} cell=${cell} rows=${rows} />
    <p class="small muted">
      Differences are from run ${letter(base)}. The best value is marked if the name shows whether larger or
      smaller is better.
    </p>
  <//>`;
}

/** @param {ComparisonProps<StepRow> & {numMore: number}} props */
export function Steps({ runs, rows, numMore }) {
  const titles = rows.map((row) => row.title);
  const name = (/** @type {StepRow} */ row) => html`<span title=${row.path}><${Name} text=${row.title} /></span>
    ${
      titles.indexOf(row.title) !== titles.lastIndexOf(row.title) &&
      html`<div class="small muted"><${Name} text=${row.path} /></div>`
    }`;
  const cell = (/** @type {StepRow} */ row, /** @type {number} */ index) => {
    const entry = row.cells[index];
    if (!entry) return html`<span class="muted">did not run</span>`;
    return html`<a class="plain" href=${link(["runs", runs[index].id, row.path])}><${State} state=${entry.state} /></a>
      <div class="small muted"><${Duration} of=${entry} />
        ${(entry.attempts ?? 0) > 1 && `, ${entry.attempts} attempts`}</div>`;
  };
  return html`<${Section} title="Steps">
    <${Compared} caption="State and duration of each step" of=${lettered(runs)} name=${name} cell=${cell}
      rows=${rows} />
    ${numMore > 0 && html`<p class="muted">${numMore} more steps are not shown.</p>`}
  <//>`;
}
