// Parameters, metrics and steps: a column for each run; what is the same in all runs is folded.

import { duration, figure, html, link, Name, NONE, plural, Section, State, signed, Table, Value } from "../ui/ui.js";
import { Letter, letter } from "./letters.js";

/**
 * The columns of a table: the name of a row, then a cell for each run.
 * @param {any[]} runs
 * @param {(row: any) => any} name
 * @param {(row: any, index: number) => any} cell
 * @param {boolean} [isNumber]
 * @returns {Column[]}
 */
const columns = (runs, name, cell, isNumber = false) => [
  { title: "", cell: name, isName: true },
  ...runs.map((_, index) => ({
    title: letter(index),
    heading: html`<${Letter} index=${index} />`,
    cell: (/** @type {any} */ row) => cell(row, index),
    isNumber,
  })),
];

/** @param {{runs: any[], rows: any[]}} props */
export function Parameters({ runs, rows }) {
  const differing = rows.filter((row) => row.differs);
  const equal = rows.filter((row) => !row.differs);
  const none = rows.length ? "No parameter differs." : "The runs have no parameters.";
  return html`<${Section} title="Parameters">
    ${differing.length === 0 && html`<p class="muted">${none}</p>`}
    ${
      differing.length > 0 &&
      html`<${Table} isRegion caption="Parameters that differ" columns=${columns(runs, nameOf, parameter)}
        rows=${differing} />`
    }
    ${
      equal.length > 0 &&
      html`<details class="equal">
        <summary>${plural(equal.length, "equal parameter")}</summary>
        <${Table} isRegion caption="Parameters that are equal" columns=${EQUAL} rows=${equal} />
      </details>`
    }
  <//>`;
}

/** @param {any} row */
const nameOf = (row) => html`<${Name} text=${row.name} />`;

/** @param {any} row @param {number} index */
function parameter(row, index) {
  const { is_set, value } = row.values[index];
  if (!is_set) return html`<span class="muted">not set</span>`;
  return html`<${Value} value=${value === "" ? '""' : value} />`;
}

/** @type {Column[]} */
const EQUAL = [
  { title: "", cell: nameOf, isName: true },
  { title: "All runs", cell: (row) => parameter(row, 0) },
];

/** @param {{runs: any[], rows: any[]}} props */
export function Metrics({ runs, rows }) {
  if (rows.length === 0) return null;
  const tasks = new Set(rows.map((row) => row.task));
  const name = (/** @type {any} */ row) => html`<${Name} text=${row.name} />
    ${tasks.size > 1 && html`<div class="small muted" title=${row.task}><bdi>${row.title}</bdi></div>`}`;
  const cell = (/** @type {any} */ row, /** @type {number} */ index) => {
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
    <${Table} isRegion caption="Metrics; differences are from run A" columns=${columns(runs, name, cell, true)}
      rows=${rows} />
    <p class="small muted">
      Differences are from run A. The best value is marked if the name shows whether larger or smaller is better.
    </p>
  <//>`;
}

/** @param {{runs: any[], rows: any[], numMore: number}} props */
export function Steps({ runs, rows, numMore }) {
  const titles = rows.map((row) => row.title);
  const name = (/** @type {any} */ row) => html`<span title=${row.path}><${Name} text=${row.title} /></span>
    ${
      titles.indexOf(row.title) !== titles.lastIndexOf(row.title) &&
      html`<div class="small muted"><${Name} text=${row.path} /></div>`
    }`;
  const cell = (/** @type {any} */ row, /** @type {number} */ index) => {
    const entry = row.cells[index];
    if (!entry) return html`<span class="muted">did not run</span>`;
    return html`<a class="plain" href=${link(["runs", runs[index].id, row.path])}><${State} state=${entry.state} /></a>
      <div class="small muted">${duration(entry.seconds)}${entry.attempts > 1 && `, ${entry.attempts} attempts`}</div>`;
  };
  return html`<${Section} title="Steps">
    <${Table} isRegion caption="State and duration of each step" columns=${columns(runs, name, cell)} rows=${rows} />
    ${numMore > 0 && html`<p class="muted">${numMore} more steps are not shown.</p>`}
  <//>`;
}
