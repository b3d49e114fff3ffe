// The versions of a model side by side.

import { link } from "../ui/address.js";
import { html, Section, Table, Time, useState } from "../ui/ui.js";
import { CompareVersions } from "./compare_versions.js";
import { Aliases, Fingerprints, metricColumns, metricsOf, Run } from "./facts.js";

const NUM_SHOWN = 25;

/** @param {{model: any}} props - The answer of `/local/models/ID/VERSION`. */
export function Versions({ model }) {
  const [isWhole, setIsWhole] = useState(false);
  const [selected, setSelected] = useState(/** @type {string[]} */ ([]));
  const rows = isWhole ? model.versions : model.versions.slice(0, NUM_SHOWN);
  const select = (/** @type {string} */ key, /** @type {boolean} */ isOn) =>
    setSelected(isOn ? [...selected, key].slice(-2) : selected.filter((each) => each !== key));
  const [one, other] = [...selected].sort((left, right) => Number(left) - Number(right));
  return html`
    <p class="muted">
      Metrics of the newest evaluation; without one, those of the run. Select two versions to compare.
    </p>
    <${Table} caption="Versions" columns=${columnsOf(model)} rows=${rows}
        keyOf=${(/** @type {any} */ row) => row.version}
      nameOf=${(/** @type {any} */ row) => `version ${row.version}`} selected=${new Set(selected)} onSelect=${select} />
    ${
      rows.length < model.versions.length &&
      html`<p class="show-more"><button
          onClick=${() => setIsWhole(true)}>Show all ${model.versions.length} versions</button></p>`
    }
    ${
      other &&
      html`<${Section} title=${`Version ${one} and version ${other}`}>
        <${CompareVersions} id=${model.id} versions=${[one, other]} />
      <//>`
    }`;
}

/** @param {any} model @returns {import("../ui/table.js").Column[]} */
function columnsOf(model) {
  return [
    {
      title: "Version",
      isName: true,
      cell: (row) => html`
        <a href=${link(["models", model.id, row.version])}
            aria-current=${row.version === model.version ? "true" : undefined}>
          Version ${row.version}</a> <${Aliases} names=${row.aliases} />
        ${row.problem && html`<div class="small error">${row.problem}</div>`}`,
    },
    ...metricColumns(model.versions.map(metricsOf), metricsOf, 4),
    { title: "Run", cell: (row) => html`<${Run} id=${row.run} />` },
    { title: "Dataset", isWideOnly: true, cell: (row) => html`<${Fingerprints} all=${row.datasets} />` },
    { title: "Endpoints", isNumber: true, isWideOnly: true, cell: (row) => row.endpoints.length },
    { title: "Created", isWideOnly: true, cell: (row) => html`<${Time} at=${row.create_time} />` },
  ];
}
