// What a run received and gave, shown while no step is chosen.

import { link } from "../ui/address.js";
import { figure, html, Name, Notice, Value, Values } from "../ui/ui.js";

const MOST = 200;

/** @param {{run: any, defaults?: Record<string, any>, unknown: string}} props */
export function Summary({ run, defaults, unknown }) {
  const outputs = Object.entries(run.outputs?.parameters ?? {});
  return html`<section class="details" aria-label="Summary of the run">
    ${unknown && html`<${Notice} kind="warn">The run has not reached the step <bdi>${unknown}</bdi>.<//>`}
    ${run.metrics.length > 0 && html`<h2>Metrics</h2><${Metrics} metrics=${run.metrics} />`}
    ${
      run.models.length > 0 &&
      html`<h2>Models</h2><ul class="plain">${registeredFirst(run.models).slice(0, MOST).map(model)}</ul>`
    }
    ${outputs.length > 0 && html`<h2>Outputs</h2><${Values} values=${outputs} />`}
    <h2>Parameters</h2><${Parameters} values=${run.parameters ?? {}} defaults=${defaults} />
    ${
      run.warnings?.length > 0 &&
      html`<h2>Differences from Vertex AI</h2>
      <ul class="plain">${run.warnings.slice(0, MOST).map(warning)}</ul>`
    }
  </section>`;
}

/** @param {string} text */
const warning = (text) => html`<li key=${text}>${text}</li>`;

/** @param {any[]} models */
const registeredFirst = (models) => [...models].sort((a, b) => Number(!a.resource_name) - Number(!b.resource_name));

/** @param {any} each */
const model = (each) => html`<li key=${`${each.task} ${each.artifact}`}>
  ${registered(each) ?? html`<bdi>${each.uri}</bdi>`}
  <div class="muted small">${last(each.task)}</div>
</li>`;

/** A version in the registry; null if the model has none. @param {any} each */
const registered = ({ resource_name: name }) => {
  const [id, version] = (name?.split("/").at(-1) ?? "").split("@");
  return id && version ? html`<a href=${link(["models", id, version])}><bdi>${id}</bdi> version ${version}</a>` : null;
};

/** The last part of a task's path. @param {string} path */
const last = (path) => path.split("/").at(-1);

/** @param {{metrics: any[]}} props */
function Metrics({ metrics }) {
  const pairs = metrics
    .slice(0, MOST)
    .map((each) => [
      html`<${Name} text=${each.name} /><div class="muted small">${last(each.task)}</div>`,
      figure(each.value),
    ]);
  return html`<dl class="values figures">
    ${pairs.map(([name, value], index) => html`<div key=${index}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** @param {Record<string, any> | undefined} defaults @param {Record<string, any>} values @param {string} name */
const isChanged = (defaults, values, name) =>
  defaults !== undefined && JSON.stringify(defaults[name]) !== JSON.stringify(values[name]);

/** The parameters; those with another value than the file gives are marked, and come first. @param {any} props */
function Parameters({ values, defaults }) {
  const changed = (/** @type {string} */ name) => isChanged(defaults, values, name);
  const names = Object.keys(values).sort((a, b) => Number(changed(b)) - Number(changed(a)) || a.localeCompare(b));
  if (!names.length) return html`<p class="muted">The pipeline has no parameters.</p>`;
  return html`<dl class="values">${names.map((name) => {
    const isGiven = defaults && !(name in defaults);
    const tag = changed(name) && html` <span class="tag">${isGiven ? "given" : "changed"}</span>`;
    return html`<div key=${name}>
      <dt><${Name} text=${name} />${tag}</dt>
      <dd>
        <${Value} value=${values[name]} />
        ${changed(name) && !isGiven && html`<p class="muted small">Default: <${Value} value=${defaults[name]} /></p>`}
      </dd>
    </div>`;
  })}</dl>`;
}
