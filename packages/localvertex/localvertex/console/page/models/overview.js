// What a version of a model is: metrics, origin, endpoints, container and files.

import { link } from "../ui/address.js";
import { bytes, count, figure, html, Section, Table, Time, Value, Values } from "../ui/ui.js";
import { Fingerprints, metricNames, metricsOf, Run } from "./facts.js";

/** @param {{model: any}} props */
export function Overview({ model }) {
  const metrics = metricsOf(model);
  const isOfRun = metrics === model.run_metrics;
  return html`
    ${metricNames([metrics]).length > 0 && html`<${Figures} metrics=${metrics} />`}
    ${
      isOfRun &&
      html`<p class="muted">${
        metricNames([metrics]).length
          ? "Metrics of the run. The version has no evaluation."
          : "No evaluation, and no metrics of a run."
      }</p>`
    }
    <div class="pair">
      <${Section} title="Origin"><${Values} values=${origin(model)} /><//>
      <${Section} title="Endpoints"><${Endpoints} rows=${model.endpoints} /><//>
    </div>
    ${
      model.evaluations.length > 0 &&
      html`<${Section} title="Evaluations"><${Evaluations} rows=${model.evaluations} /><//>`
    }
    <div class="pair">
      <${Section} title="Container"><${Container} model=${model} /><//>
      <${Section} title="Labels">
        ${
          Object.keys(model.labels).length
            ? html`<${Values} values=${model.labels} />`
            : html`<p class="muted">No labels.</p>`
        }
      <//>
    </div>
    <${Section} title="Files"><${Files} model=${model} /><//>`;
}

/** The main metrics in large digits. @param {{metrics: Record<string, any>}} props */
export function Figures({ metrics }) {
  const numbers = metricNames([metrics]).filter((name) => typeof metrics[name] === "number");
  return html`<dl class="measures">${numbers
    .slice(0, 12)
    .map((name) => html`<div key=${name}><dt>${name}</dt><dd>${figure(metrics[name])}</dd></div>`)}</dl>`;
}

/** @param {any} model @returns {[string, any][]} */
function origin(model) {
  const rows = /** @type {[string, any][]} */ ([
    ["Run", html`<${Run} id=${model.run} />`],
    ["Dataset", html`<div><${Fingerprints} all=${model.datasets} /></div>`],
    ["Created", html`<${Time} at=${model.create_time} />`],
  ]);
  if (model.version_description) rows.push(["Version description", model.version_description]);
  if (model.description) rows.push(["Model description", model.description]);
  if (Object.keys(model.parameters).length) rows.push(["Parameters", model.parameters]);
  return rows;
}

/** @param {{rows: any[]}} props */
function Endpoints({ rows }) {
  if (!rows.length) return html`<p class="muted">Not deployed.</p>`;
  /** @type {import("../ui/table.js").Column[]} */
  const columns = [
    { title: "Endpoint", isName: true, cell: (row) => row.display_name || row.name },
    { title: "Deployed model", cell: (row) => html`<code>${row.deployed_model}</code>` },
    { title: "Traffic", isNumber: true, cell: (row) => `${row.traffic}%` },
  ];
  return html`<${Table} caption="Endpoints" columns=${columns} rows=${rows} />`;
}

/** @param {{rows: any[]}} props */
function Evaluations({ rows }) {
  /** @type {import("../ui/table.js").Column[]} */
  const columns = [
    {
      title: "Evaluation",
      isName: true,
      cell: (row) => html`${row.name || row.id}
        ${row.problem && html`<div class="small error">${row.problem}</div>`}`,
    },
    {
      title: "Figures",
      cell: (row) =>
        metricNames([row.figures]).map((name) => html`<div key=${name}>${name} ${figure(row.figures[name])}</div>`),
    },
    { title: "All metrics", cell: (row) => html`<${Value} value=${row.metrics} />` },
    { title: "Created", isWideOnly: true, cell: (row) => html`<${Time} at=${row.create_time} />` },
  ];
  return html`<${Table} caption="Evaluations" columns=${columns} rows=${rows} />`;
}

/** @param {{model: any}} props */
function Container({ model }) {
  return html`
    ${
      model.container ? html`<${Values} values=${model.container} />` : html`<p class="muted">No serving container.</p>`
    }
    <p class="small after">${
      model.cannot_run
        ? html`<span class="error">Cannot run here:</span> ${model.cannot_run}`
        : html`Runs here: <a href=${link(["models", model.id, model.version], { tab: "try" })}>try it</a>`
    }</p>`;
}

/** @param {{model: any}} props */
function Files({ model }) {
  if (!model.num_files) return html`<p class="muted">The registry has no files of this version.</p>`;
  /** @type {import("../ui/table.js").Column[]} */
  const columns = [
    { title: "File", isName: true, cell: (row) => html`<code>${row.path}</code>` },
    { title: "Size", isNumber: true, cell: (row) => bytes(row.size) },
  ];
  const more = model.num_files - model.files.length;
  return html`
    <p class="muted">${count(model.num_files)} files, ${bytes(model.num_bytes)}</p>
    <div class="short"><${Table} caption="Files" columns=${columns} rows=${model.files} /></div>
    ${more > 0 && html`<p class="muted">and ${count(more)} more</p>`}`;
}
