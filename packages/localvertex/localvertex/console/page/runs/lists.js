// The two lists of the view of runs: where their rows come from, and what is shown of each.

import { vertex } from "../server/api.js";
import { link } from "../ui/address.js";
import { Duration, html, isFinal, State, Time } from "../ui/ui.js";

export const PAGE_SIZE = 50;

/**
 * @typedef {object} List
 * @property {string} title
 * @property {string[]} states - What the filter offers.
 * @property {(text: string, state: string, token: string) => string} path - What is read.
 * @property {(answer: any) => any[]} rows
 * @property {(answer: any) => string} nextToken
 * @property {import("../ui/table.js").Column[]} columns
 */

const DURATION = { title: "Duration", isNumber: true, isWideOnly: true };

/** Text as a filter spells it. @param {string} text */
const quoted = (text) => `"${text.replace(/["\\]/g, "\\$&")}"`;

/** @param {string[]} parts @param {Record<string, string>} others */
const query = (parts, others) => `?${new URLSearchParams({ filter: parts.filter(Boolean).join(" AND "), ...others })}`;

/** @type {List} */
const RUNS = {
  title: "Pipeline runs",
  states: ["RUNNING", "PENDING", "SUCCEEDED", "FAILED", "CANCELLED"],
  path: (text, state, token) => {
    const found = ["name", "id", "pipeline"].map((field) => `${field}:${quoted(text)}`).join(" OR ");
    const parts = [text && `(${found})`, state && `state=${quoted(state)}`];
    return `/local/runs${query(parts, { page_size: String(PAGE_SIZE), page_token: token })}`;
  },
  rows: (answer) => answer.runs,
  nextToken: (answer) => answer.next_page_token,
  columns: [
    { title: "Run", isName: true, cell: (row) => html`<${RunName} row=${row} />` },
    { title: "State", cell: (row) => html`<${State} state=${row.state} />` },
    { title: "Pipeline", isWideOnly: true, cell: (row) => html`<bdi>${row.pipeline}</bdi>` },
    { title: "Started by", isWideOnly: true, cell: startedBy },
    { title: "Created", isWideOnly: true, cell: (row) => html`<${Time} at=${row.create_time} />` },
    { ...DURATION, cell: (row) => took(row.state, row.start_time, row.end_time, row.seconds, row.idle_seconds) },
  ],
};

/** @type {List} */
const JOBS = {
  title: "Custom jobs",
  states: ["JOB_STATE_RUNNING", "JOB_STATE_PENDING", "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"],
  path: (text, state, token) => {
    const parts = [text && `display_name:${quoted(text)}`, state && `state=${quoted(state)}`];
    return vertex(`customJobs${query(parts, { pageSize: String(PAGE_SIZE), pageToken: token })}`);
  },
  rows: (answer) => answer.customJobs ?? [],
  nextToken: (answer) => answer.nextPageToken ?? "",
  columns: [
    { title: "Job", isName: true, cell: (row) => html`<${JobName} row=${row} />` },
    { title: "State", cell: (row) => html`<${State} state=${row.state} />` },
    { title: "Created", isWideOnly: true, cell: (row) => html`<${Time} at=${row.createTime} />` },
    { ...DURATION, cell: (row) => took(row.state, row.startTime, row.endTime, between(row.startTime, row.endTime)) },
  ],
};

/** @type {Record<string, List>} */
export const LISTS = { runs: RUNS, jobs: JOBS };

/** @param {{row: RunRow}} props */
function RunName({ row }) {
  return html`
    <a class="title" href=${link(["runs", row.id])}><bdi>${row.name}</bdi></a>
    ${row.name !== row.id && html`<div class="muted small"><bdi>${row.id}</bdi></div>`}
    <div class="narrow-only muted small"><${Time} at=${row.create_time} /></div>
    ${row.error && html`<div class="error small clamp">${row.error}</div>`}`;
}

/** @param {{row: any}} props */
function JobName({ row }) {
  const id = row.name.split("/").at(-1);
  return html`
    <a class="title" href=${link(["jobs", id])}><bdi>${row.displayName}</bdi></a>
    <div class="muted small">${id}<span class="narrow-only"> · <${Time} at=${row.createTime} /></span></div>
    ${row.error && html`<div class="error small clamp">${row.error.message}</div>`}`;
}

/** @param {RunRow} row */
function startedBy(row) {
  if (row.schedule) return html`<a href=${link(["schedules", row.schedule])}>Schedule</a>`;
  return row.is_own ? "Console or API" : "Terminal";
}

/** @param {string} state @param {string?} start @param {string?} end @param {number?} seconds @param {number} idle */
function took(state, start, end, seconds, idle = 0) {
  if (!start) return html`<span class="muted">–</span>`;
  return html`<${Duration} seconds=${seconds} since=${isFinal(state) || end ? null : start} idle=${idle} />`;
}

/** @param {string | undefined} start @param {string | undefined} end */
const between = (start, end) => (start && end ? (Date.parse(end) - Date.parse(start)) / 1000 : null);
