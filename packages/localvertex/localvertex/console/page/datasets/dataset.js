// One dataset: what changed since the one before, its pages, and its metadata and runs.

import { Figures } from "../models/overview.js";
import { link } from "../ui/address.js";
import { html, useEffect, useRef, useState } from "../ui/html.js";
import { change, Frame, figure, Table, Tabs, Time, Value, Values } from "../ui/ui.js";

const CHANGED = "changed";
const DETAILS = "details";

/** @param {{dataset: any}} props */
export function Dataset({ dataset }) {
  const pages = dataset.pages.map((/** @type {any} */ page) => ({ ...page, id: `page-${page.name}` }));
  pages.sort((/** @type {any} */ one, /** @type {any} */ other) => rank(one) - rank(other));
  const [tab, setTab] = useState(pages[0]?.id ?? CHANGED);
  const page = pages.find((/** @type {any} */ each) => each.id === tab);
  const card = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => card.current?.scrollIntoView({ block: "nearest" }), []);
  return html`<div class="card dataset" ref=${card}>
    <h3>Dataset <span class="mono">${dataset.fingerprint}</span></h3>
    <${Tabs} label="Dataset" selected=${tab} onSelect=${setTab} tabs=${[
      ...pages.map((/** @type {any} */ each) => ({ id: each.id, title: titleOf(each.name) })),
      { id: CHANGED, title: "Changed metadata", count: dataset.before ? dataset.changed.length : undefined },
      { id: DETAILS, title: "Details" },
    ]}>
      ${page && html`<${Frame} key=${page.id} src=${address(page)} title=${`Page ${page.name} of the dataset`} />`}
      ${tab === CHANGED && html`<${Changed} dataset=${dataset} />`}
      ${tab === DETAILS && html`<${Details} dataset=${dataset} />`}
    <//>
    ${!pages.length && html`<p class="muted">The step wrote no system.HTML artifact, or its run was deleted.</p>`}
  </div>`;
}

/** The report comes first. @param {{name: string}} page */
const rank = ({ name }) => (name === "report" ? 0 : 1);

/** The name of an output as a title. @param {string} name */
const titleOf = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");

/** The address of a file of a run. @param {{run: string, path: string}} page */
const address = ({ run, path }) => `/runs/${[run, ...path.split("/")].map(encodeURIComponent).join("/")}`;

/** @param {{dataset: any}} props */
function Changed({ dataset }) {
  if (!dataset.before) return html`<p class="muted">This is the first dataset of its name or source.</p>`;
  /** @type {import("../ui/table.js").Column[]} */
  const columns = [
    { title: "Metadata", isName: true, cell: (row) => row.name },
    { title: "Before", isNumber: true, cell: (row) => html`<${Entry} value=${row.before} />` },
    { title: "Now", isNumber: true, cell: (row) => html`<${Entry} value=${row.now} />` },
    { title: "Difference", isNumber: true, cell: (row) => change(row.before, row.now) },
  ];
  return html`
    <p>Compared with <a class="mono"
        href=${link(["datasets"], { dataset: dataset.before })}>${dataset.before.slice(0, 12)}</a>,
      the previous dataset.</p>
    ${Object.entries(dataset.metrics).map(
      ([name, metrics]) => html`<h4 key=${name} class="muted">${name}</h4><${Figures} metrics=${metrics} />`,
    )}
    ${
      dataset.changed.length
        ? html`<div class="breaking"><${Table} caption="Metadata that changed" columns=${columns}
            rows=${dataset.changed} /></div>`
        : html`<p class="muted">Only the content changed; all other metadata is the same.</p>`
    }`;
}

/** @param {{value: any}} props */
const Entry = ({ value }) => (typeof value === "number" ? figure(value) : html`<${Value} value=${value} />`);

/** @param {{dataset: any}} props */
function Details({ dataset }) {
  const more = dataset.num_runs - dataset.runs.length;
  const runs = html`<ul class="entries">
    ${dataset.runs.map(
      (/** @type {any} */ each) => html`<li key=${`${each.run} ${each.task}`}>
        <a href=${link(["runs", each.run, each.task])}>${each.run}</a> <${Time} at=${each.time} />
        ${each.is_cached && html`<span class="muted">cached</span>`}
      </li>`,
    )}
    ${more > 0 && html`<li class="muted">and ${more} older ones</li>`}
  </ul>`;
  return html`<${Values} values=${[
    ["Fingerprint", html`<span class="mono">${dataset.fingerprint}</span>`],
    ["Files", dataset.uri],
    ["Runs", runs],
    ...Object.entries(dataset.metadata),
  ]} />`;
}
