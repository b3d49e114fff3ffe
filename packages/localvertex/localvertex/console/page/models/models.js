// The list of models: the version in use of each, with its metrics.

import { useLoad } from "../server/load.js";
import { link } from "../ui/address.js";
import { Empty, html, Loading, Page, Problem, Table, Time } from "../ui/ui.js";
import { Aliases, metricColumns, metricsOf } from "./facts.js";

export default function Models() {
  const { data, error, reload } = useLoad("/local/models");
  return html`<${Page} title="Models">
    ${error && html`<${Problem} error=${error} onRetry=${reload} />`}
    ${!data && !error && html`<${Loading} />`}
    ${data && (data.models.length ? html`<${List} models=${data.models} />` : html`<${NoModels} />`)}
  <//>`;
}

function NoModels() {
  return html`<${Empty} title="No models yet">
    <p>A pipeline registers a model with ModelUploadOp, and a program with aiplatform.Model.upload().</p>
  <//>`;
}

/** @param {{models: any[]}} props */
function List({ models }) {
  /** @type {import("../ui/table.js").Column[]} */
  const columns = [
    { title: "Model", isName: true, cell: nameOf },
    { title: "Versions", isNumber: true, cell: (row) => row.num_versions },
    { title: "In use", cell: (row) => html`${row.shown.version} <${Aliases} names=${row.shown.aliases} />` },
    ...metricColumns(
      models.map((row) => metricsOf(row.shown)),
      (row) => metricsOf(row.shown),
      3,
    ),
    { title: "Endpoints", isNumber: true, isWideOnly: true, cell: (row) => row.num_endpoints },
    { title: "Last version", isWideOnly: true, cell: (row) => html`<${Time} at=${row.update_time} />` },
  ];
  return html`<${Table} caption="Models" columns=${columns} rows=${models} />`;
}

/** @param {any} row */
function nameOf(row) {
  return html`
    <a href=${link(["models", row.id, row.shown.version])}>${row.display_name}</a>
    ${row.description && html`<div class="small muted">${row.description}</div>`}
    ${[row.problem, row.shown.problem].filter(Boolean).map((text) => html`<div class="small error">${text}</div>`)}`;
}
