// Parameters, metrics and steps: a column for each run, with what is the same folded.
import { html } from "../../html.js";
import { link } from "../../routes.js";
import { Section } from "../../ui/page.js";
import { State } from "../../ui/state.js";
import { Table } from "../../ui/table.js";
import { duration } from "../../ui/time.js";
import { Value } from "../../ui/values.js";
import { Letter } from "./letters.js";

const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 5, useGrouping: true });
const SIGNED = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, signDisplay: "exceptZero" });

/**
 * The columns of a table: the name of a row, then a cell for each run.
 * @param {any[]} runs
 * @param {(row: any) => any} name
 * @param {(row: any, index: number) => any} cell
 * @param {boolean} [isNumber]
 */
const columns = (runs, name, cell, isNumber = false) => [
  { title: "", cell: name, isName: true },
  ...runs.map((_, index) => ({
    title: /** @type {any} */ (html`<${Letter} index=${index} />`),
    cell: (/** @type {any} */ row) => cell(row, index),
    isNumber,
  })),
];

/** @param {{runs: any[], rows: any[]}} props */
export function Parameters({ runs, rows }) {
  const differing = rows.filter((row) => row.differs);
  const equal = rows.filter((row) => !row.differs);
  const name = (/** @type {any} */ row) => html`<bdi>${row.name}</bdi>`;
  const cell = (/** @type {any} */ row, /** @type {number} */ index) => {
    const { is_set, value } = row.values[index];
    return is_set ? html`<${Value} value=${value === "" ? '""' : value} />` : html`<span class="muted">not set</span>`;
  };
  const keyOf = (/** @type {any} */ row) => row.name;
  return html`<${Section} title="Parameters">
    ${differing.length === 0 && html`<p class="muted">${rows.length ? "No parameter differs." : "The runs have no parameters."}</p>`}
    ${differing.length > 0 && html`<${Table} caption="Parameters that differ" columns=${columns(runs, name, cell)} rows=${differing} keyOf=${keyOf} />`}
    ${
      equal.length > 0 &&
      html`<details class="equal">
        <summary>${equal.length} equal ${equal.length === 1 ? "parameter" : "parameters"}</summary>
        <${Table} caption="Parameters that are equal" columns=${columns(runs.slice(0, 1), name, cell).map((column, index) => (index ? { ...column, title: "All runs" } : column))}
          rows=${equal} keyOf=${keyOf} />
      </details>`
    }
  <//>`;
}

/** @param {{runs: any[], rows: any[]}} props */
export function Metrics({ runs, rows }) {
  if (rows.length === 0) return null;
  const tasks = new Set(rows.map((row) => row.task));
  const name = (/** @type {any} */ row) => html`<bdi>${row.name}</bdi>
    ${tasks.size > 1 && html`<div class="small muted"><bdi>${row.task}</bdi></div>`}`;
  const cell = (/** @type {any} */ row, /** @type {number} */ index) => {
    const [value, difference] = [row.values[index], row.differences[index]];
    if (value === null) return html`<span class="muted">–</span>`;
    const isBest = row.best.includes(index);
    return html`<span class=${isBest ? "best" : ""}>${typeof value === "number" ? NUMBER.format(value) : String(value)}</span>
      ${isBest && html`<span class="badge">best</span>`}
      ${difference !== null && html`<div class="small muted">${SIGNED.format(difference)}</div>`}`;
  };
  const keyOf = (/** @type {any} */ row) => `${row.task} ${row.artifact} ${row.name}`;
  return html`<${Section} title="Metrics">
    <${Table} caption="Metrics; differences are to run A" columns=${columns(runs, name, cell, true)} rows=${rows} keyOf=${keyOf} />
    <p class="small muted">Differences are to run A. The best value is marked where larger or smaller is known to be better.</p>
  <//>`;
}

/** @param {{runs: any[], rows: any[], numMore: number}} props */
export function Steps({ runs, rows, numMore }) {
  const name = (/** @type {any} */ row) => html`<bdi>${row.title}</bdi>
    ${row.title !== row.path && html`<div class="small muted"><bdi>${row.path}</bdi></div>`}`;
  const cell = (/** @type {any} */ row, /** @type {number} */ index) => {
    const entry = row.cells[index];
    if (!entry) return html`<span class="muted">no such step</span>`;
    return html`<a class="plain" href=${link(["runs", runs[index].id, row.path])}><${State} state=${entry.state} /></a>
      <div class="small muted">${duration(entry.seconds)}${entry.attempts > 1 && `, ${entry.attempts} attempts`}</div>`;
  };
  return html`<${Section} title="Steps">
    <${Table} caption="State and duration of each step" columns=${columns(runs, name, cell)} rows=${rows} keyOf=${(/** @type {any} */ row) => row.path} />
    ${numMore > 0 && html`<p class="muted">${numMore} more steps are not shown.</p>`}
  <//>`;
}
