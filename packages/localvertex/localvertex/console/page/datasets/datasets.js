// The datasets that runs have written: by name or source, with the report of each and what changed.

import { Figures } from "../models/facts.js";
import { useLoad } from "../server/server.js";
import {
  change,
  count,
  Empty,
  Frame,
  figure,
  html,
  Loaded,
  link,
  Notice,
  Page,
  Section,
  Table,
  Tabs,
  Time,
  useEffect,
  useRef,
  useState,
  Value,
  Values,
} from "../ui/ui.js";

/** The entries of metadata that come first where there is no room for all. */
const FIRST = ["num_examples", "num_images", "num_rows", "num_classes"];

const NUM_SHOWN = 10;

const CHANGED = "changed";
const DETAILS = "details";

/** @param {ViewProps} props */
export default function Datasets({ query }) {
  // The beginning of a fingerprint.
  const wanted = query.get("dataset") ?? "";
  return html`<${Page} title="Datasets">
    <${Loaded} ...${useLoad("/local/datasets")}>${(data) => {
      /** @type {any[]} */
      const groups = data.groups;
      const isMissing = wanted && groups.length && !groups.some((group) => find(group.datasets, wanted));
      return html`
        ${data.num_damaged_runs > 0 && html`<${Notice} kind="warn">${data.num_damaged_runs} runs cannot be read.<//>`}
        ${
          isMissing &&
          html`<${Notice} kind="warn">No run in this work folder has written the dataset <code>${wanted}</code>.<//>`
        }
        ${groups.map((group) => html`<${Group} key=${group.title} group=${group} wanted=${wanted} />`)}
        ${
          !groups.length &&
          html`<${Empty} title="No datasets yet">
            <p>Output artifacts of type system.Dataset appear here if their metadata has a fingerprint.</p>
          <//>`
        }`;
    }}<//>
  <//>`;
}

/** @param {any[]} datasets @param {string} wanted */
const find = (datasets, wanted) => wanted && datasets.find((each) => each.fingerprint.startsWith(wanted));

/** @param {string} fingerprint @param {boolean} [isCurrent] */
const datasetLink = (fingerprint, isCurrent) =>
  html`<a class="mono" href=${link(["datasets"], { dataset: fingerprint })}
    aria-current=${isCurrent ? "true" : undefined}>${fingerprint.slice(0, 12)}</a>`;

/** @param {{group: any, wanted: string}} props */
function Group({ group: { title, datasets, num_datasets }, wanted }) {
  const selected = find(datasets, wanted);
  const more = num_datasets - datasets.length;
  const most = Math.max(NUM_SHOWN, datasets.indexOf(selected) + 1);
  return html`<${Section} title=${title}>
    <${Table} caption=${`Datasets of ${title}`} columns=${columnsOf(datasets, selected)} rows=${datasets}
      most=${most} />
    ${more > 0 && html`<p class="muted show-more">and ${count(more)} older ones</p>`}
    ${selected && html`<${Dataset} key=${selected.fingerprint} dataset=${selected} />`}
  <//>`;
}

/** @param {any[]} datasets @param {any} selected @returns {Column[]} */
function columnsOf(datasets, selected) {
  const names = FIRST.filter((name) => datasets.some((each) => name in each.metadata));
  return [
    { title: "Dataset", isName: true, cell: (row) => datasetLink(row.fingerprint, row === selected) },
    { title: "Written", cell: (row) => html`<${Time} at=${row.time} />` },
    ...names.map((name) => ({
      title: name,
      isNumber: true,
      isWideOnly: name !== names[0],
      cell: (/** @type {any} */ row) => figure(row.metadata[name]),
    })),
    { title: "Changed", isWideOnly: true, cell: changed },
    { title: "Runs", isNumber: true, isWideOnly: true, cell: (row) => row.num_runs },
  ];
}

/** @param {any} row */
function changed(row) {
  if (!row.before) return html`<span class="muted">first</span>`;
  const names = row.changed.map((/** @type {any} */ each) => each.name);
  if (!names.length) return "content only";
  return names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
}

/** @param {{dataset: any}} props */
function Dataset({ dataset }) {
  /** @type {any[]} */
  const pages = dataset.pages.map((/** @type {any} */ page) => ({ ...page, id: `page-${page.name}` }));
  // The report comes first.
  pages.sort((one, other) => Number(other.name === "report") - Number(one.name === "report"));
  const [tab, setTab] = useState(pages[0]?.id ?? CHANGED);
  const page = pages.find((each) => each.id === tab);
  const card = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => card.current?.scrollIntoView({ block: "nearest" }), []);
  return html`<div class="card dataset" ref=${card}>
    <h3>Dataset <span class="mono">${dataset.fingerprint}</span></h3>
    <${Tabs} label="Dataset" selected=${tab} onSelect=${setTab} tabs=${[
      ...pages.map(({ id, name }) => ({
        id,
        title: name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " "),
      })),
      { id: CHANGED, title: "Changed metadata", count: dataset.before ? dataset.changed.length : undefined },
      { id: DETAILS, title: "Details" },
    ]}>
      ${
        page &&
        html`<${Frame} key=${page.id} title=${`Page ${page.name} of the dataset`}
          src=${`/runs/${[page.run, ...page.path.split("/")].map(encodeURIComponent).join("/")}`} />`
      }
      ${tab === CHANGED && html`<${Changed} dataset=${dataset} />`}
      ${tab === DETAILS && html`<${Details} dataset=${dataset} />`}
    <//>
    ${!pages.length && html`<p class="muted">The step wrote no system.HTML artifact, or its run was deleted.</p>`}
  </div>`;
}

/** @param {{dataset: any}} props */
function Changed({ dataset: { before, metrics, changed } }) {
  if (!before) return html`<p class="muted">This is the first dataset of its name or source.</p>`;
  const entry = (/** @type {any} */ value) =>
    typeof value === "number" ? figure(value) : html`<${Value} value=${value} />`;
  return html`
    <p>Compared with ${datasetLink(before)}, the previous dataset.</p>
    ${Object.entries(metrics).map(
      ([name, each]) => html`<h4 key=${name} class="muted">${name}</h4><${Figures} metrics=${each} />`,
    )}
    ${
      changed.length
        ? html`<div class="breaking"><${Table} caption="Metadata that changed" rows=${changed} columns=${[
            { title: "Metadata", isName: true, cell: (row) => row.name },
            { title: "Before", isNumber: true, cell: (row) => entry(row.before) },
            { title: "Now", isNumber: true, cell: (row) => entry(row.now) },
            { title: "Difference", isNumber: true, cell: (row) => change(row.before, row.now) },
          ]} /></div>`
        : html`<p class="muted">Only the content changed; all other metadata is the same.</p>`
    }`;
}

/** @param {{dataset: any}} props */
function Details({ dataset: { fingerprint, uri, runs, num_runs, metadata } }) {
  const more = num_runs - runs.length;
  const links = html`<ul class="entries">
    ${runs.map(
      (/** @type {any} */ each) => html`<li key=${`${each.run} ${each.task}`}>
        <a href=${link(["runs", each.run, each.task])}>${each.run}</a> <${Time} at=${each.time} />
        ${each.is_cached && html`<span class="muted">cached</span>`}
      </li>`,
    )}
    ${more > 0 && html`<li class="muted">and ${more} older ones</li>`}
  </ul>`;
  return html`<${Values} values=${[
    ["Fingerprint", html`<span class="mono">${fingerprint}</span>`],
    ["Files", uri],
    ["Runs", links],
    ...Object.entries(metadata),
  ]} />`;
}
