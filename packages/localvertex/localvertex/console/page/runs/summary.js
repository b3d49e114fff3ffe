// What a run received and gave, shown while no step is chosen.

import { beside, report } from "../server/report.js";
import { figure, html, link, Name, Notice, Value, Values } from "../ui/ui.js";

const MOST = 200;

/** @param {{run: any, defaults?: Record<string, any>, unknown: string}} props */
export function Summary({ run, defaults, unknown }) {
  const outputs = Object.entries(run.outputs?.parameters ?? {});
  return html`<section class="card details" aria-label="Summary of the run">
    ${unknown && html`<${Notice} kind="warn">The run has not reached the step <bdi>${unknown}</bdi>.<//>`}
    ${run.metrics.length > 0 && html`<h2>Metrics</h2><${Values} look="figures" values=${metrics(run.metrics)} />`}
    ${run.models.length > 0 && html`<h2>Models</h2><ul class="plain">${models(run.models)}</ul>`}
    ${outputs.length > 0 && html`<h2>Outputs</h2><${Values} values=${outputs} />`}
    <h2>Parameters</h2><${Parameters} values=${run.parameters ?? {}} defaults=${defaults} />
    <h2>Pipeline</h2><${Values} values=${{ File: run.file, "SHA-256": run.sha256?.slice(0, 16) }} />
    ${
      run.warnings?.length > 0 &&
      html`<h2>Differences from Vertex AI</h2>
      <ul class="plain">${run.warnings.slice(0, MOST).map((/** @type {string} */ text) => html`<li>${text}</li>`)}</ul>`
    }
  </section>`;
}

/** The last part of a task's path. @param {{task: string}} of */
const stepOf = ({ task }) => html`<div class="muted small">${task.split("/").at(-1)}</div>`;

/** @param {any[]} found */
const metrics = (found) =>
  found.slice(0, MOST).map((each) => [html`<${Name} text=${each.name} />${stepOf(each)}`, figure(each.value)]);

/** The models; those that have a version in the registry come first. @param {any[]} found */
const models = (found) =>
  [...found]
    .sort((a, b) => Number(!a.resource_name) - Number(!b.resource_name))
    .slice(0, MOST)
    .map((each) => {
      const [id, version] = (each.resource_name?.split("/").at(-1) ?? "").split("@");
      const title = version
        ? html`<a href=${report ? beside("..", "models", id, version, "") : link(["models", id, version])}>
            <bdi>${id}</bdi> version ${version}</a>`
        : html`<bdi>${each.uri}</bdi>`;
      return html`<li>${title}${stepOf(each)}</li>`;
    });

/** The parameters; those with another value than the file gives are marked, and come first. @param {any} props */
function Parameters({ values, defaults }) {
  const isChanged = (/** @type {string} */ name) =>
    defaults !== undefined && JSON.stringify(defaults[name]) !== JSON.stringify(values[name]);
  const names = Object.keys(values).sort((a, b) => Number(isChanged(b)) - Number(isChanged(a)) || a.localeCompare(b));
  if (!names.length) return html`<p class="muted">The pipeline has no parameters.</p>`;
  const pairs = names.map((name) => {
    if (!isChanged(name)) return [name, values[name]];
    const isGiven = !(name in defaults);
    return [
      html`<${Name} text=${name} /> <span class="tag">${isGiven ? "given" : "changed"}</span>`,
      html`<div><${Value} value=${values[name]} />
        ${!isGiven && html`<p class="muted small">Default: <${Value} value=${defaults[name]} /></p>`}</div>`,
    ];
  });
  return html`<${Values} values=${pairs} />`;
}
