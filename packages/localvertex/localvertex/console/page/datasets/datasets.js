// The datasets that runs have written: by name or source, with the report of each and what changed.

import { useLoad } from "../server/load.js";
import { link } from "../ui/address.js";
import { html, useState } from "../ui/html.js";
import { count, Empty, figure, Loading, Notice, Page, Problem, Section, Table, Time } from "../ui/ui.js";
import { Dataset } from "./dataset.js";

/** The entries of metadata that come first where there is no room for all. */
const FIRST = ["num_examples", "num_images", "num_rows", "num_classes"];

const NUM_SHOWN = 10;

/** @param {{query: URLSearchParams}} props */
export default function Datasets({ query }) {
  const { data, error, reload } = useLoad("/local/datasets");
  const wanted = query.get("dataset") ?? "";
  return html`<${Page} title="Datasets">
    ${error && html`<${Problem} error=${error} onRetry=${reload} />`}
    ${!data && !error && html`<${Loading} />`}
    ${data?.num_damaged_runs > 0 && html`<${Notice} kind="warn">${data.num_damaged_runs} runs cannot be read.<//>`}
    ${
      data &&
      (data.groups.length ? html`<${Groups} groups=${data.groups} wanted=${wanted} />` : html`<${NoDatasets} />`)
    }
  <//>`;
}

function NoDatasets() {
  return html`<${Empty} title="No datasets yet">
    <p>Output artifacts of type system.Dataset appear here if their metadata has a fingerprint.</p>
  <//>`;
}

/** @param {{groups: any[], wanted: string}} props - `wanted` is the beginning of a fingerprint. */
function Groups({ groups, wanted }) {
  const isFound = groups.some((group) => find(group, wanted));
  return html`
    ${
      wanted &&
      !isFound &&
      html`<${Notice} kind="warn">No run in this work directory has written the dataset
      <code>${wanted}</code>.<//>`
    }
    ${groups.map((group) => html`<${Group} key=${group.title} group=${group} wanted=${wanted} />`)}`;
}

/** @param {any} group @param {string} wanted */
const find = (group, wanted) =>
  wanted && group.datasets.find((/** @type {any} */ each) => each.fingerprint.startsWith(wanted));

/** @param {{group: any, wanted: string}} props */
function Group({ group, wanted }) {
  const [isWhole, setIsWhole] = useState(false);
  const selected = find(group, wanted);
  const first = group.datasets.slice(0, NUM_SHOWN);
  const rows = isWhole || (selected && !first.includes(selected)) ? group.datasets : first;
  const more = group.num_datasets - group.datasets.length;
  return html`<${Section} title=${group.title}>
    <${Table} caption=${`Datasets of ${group.title}`} columns=${columnsOf(group, selected)}
      rows=${rows} />
    ${
      rows.length < group.datasets.length
        ? html`<p class="show-more"><button
            onClick=${() => setIsWhole(true)}>Show ${group.datasets.length} datasets</button></p>`
        : more > 0 && html`<p class="muted show-more">and ${count(more)} older ones</p>`
    }
    ${selected && html`<${Dataset} key=${selected.fingerprint} dataset=${selected} />`}
  <//>`;
}

/** @param {any} group @param {any} selected @returns {import("../ui/table.js").Column[]} */
function columnsOf(group, selected) {
  const names = FIRST.filter((name) => group.datasets.some((/** @type {any} */ each) => name in each.metadata));
  return [
    {
      title: "Dataset",
      isName: true,
      cell: (row) => html`<a class="mono" href=${link(["datasets"], { dataset: row.fingerprint })}
        aria-current=${row === selected ? "true" : undefined}>${row.fingerprint.slice(0, 12)}</a>`,
    },
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
