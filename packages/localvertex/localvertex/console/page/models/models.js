// The list of models: the version in use of each, with its metrics.

import { useLoad } from "../server/server.js";
import { Empty, html, Loaded, link, Page, Table, Time } from "../ui/ui.js";
import { Aliases, Fingerprints, metricColumns, metricsOf, Run } from "./facts.js";

export default function Models() {
  return html`<${Page} title="Models">
    <${Loaded} ...${useLoad("/local/models")}>${({ models }) =>
      models.length
        ? html`<${Table} caption="Models" columns=${columnsOf(models)} rows=${models} />`
        : html`<${Empty} title="No models yet">
            <p>A pipeline registers a model with ModelUploadOp, and a program with aiplatform.Model.upload().</p>
          <//>`}<//>
  <//>`;
}

/** @param {ListedModel[]} models @returns {Column[]} */
function columnsOf(models) {
  const metrics = (/** @type {ListedModel} */ row) => metricsOf(row.shown);
  return [
    {
      title: "Model",
      isName: true,
      cell: (row) => html`
        <a href=${link(["models", row.id, row.shown.version])}>${row.display_name}</a>
        ${row.description && html`<div class="small muted">${row.description}</div>`}
        ${[row.problem, row.shown.problem].map((text) => text && html`<div class="small error">${text}</div>`)}`,
    },
    { title: "Versions", isNumber: true, cell: (row) => row.num_versions },
    { title: "In use", cell: (row) => html`${row.shown.version} <${Aliases} names=${row.shown.aliases} />` },
    ...metricColumns(models.map(metrics), metrics, 3),
    { title: "Run", isWideOnly: true, cell: ({ shown }) => html`<${Run} id=${shown.run} />` },
    { title: "Dataset", isWideOnly: true, cell: ({ shown }) => html`<${Fingerprints} all=${shown.datasets} />` },
    { title: "Endpoints", isNumber: true, isWideOnly: true, cell: (row) => row.num_endpoints },
    { title: "Last version", isWideOnly: true, cell: (row) => html`<${Time} at=${row.update_time} />` },
  ];
}
