// What came of a run, and what it received and gave, shown while no step is chosen.

import { Training } from "../jobs/replicas.js";
import { beside, report } from "../server/report.js";
import { useLoad } from "../server/server.js";
import {
  count,
  duration,
  figure,
  html,
  isFinal,
  link,
  Name,
  Notice,
  percent,
  plain,
  plural,
  Value,
  Values,
} from "../ui/ui.js";

const MOST = 200;

/**
 * What a user came for: how far the run is, its main metric with the curve, its model and endpoint.
 * @param {{run: ShownRun, tasks: Map<string, ShownEntry>, trained?: ShownEntry, job: Live}} props - `trained`: the
 *   entry with the `job`.
 */
export function Outcome({ run, tasks, trained, job }) {
  const running = [...tasks.values()].filter((each) => each.kind === "step" && plain(each.state) === "RUNNING");
  const { replicas = [] } = job.job?.status ?? trained?.custom_job ?? {};
  const replica =
    trained && running.includes(trained) && replicas.find((/** @type {ReplicaStatus} */ each) => each.num_steps);
  const found = [...tasks.values()].flatMap(({ outputs }) => Object.values(outputs.artifacts).flat());
  const endpoint = found.find((each) => each.type.schemaTitle === "google.VertexEndpoint");
  const registered = run.models.filter((each) => each.resource_name);
  const facts = [
    [
      "Running",
      running.length > 0 &&
        html`<span>${running
          .slice(0, 5)
          .map(
            (each) => html`<a key=${each.path} href=${link(["runs", run.id, each.path])}>${each.title}</a> `,
          )}</span>`,
    ],
    ["Main metric", run.main_metric && html`<span class="main-metric">${run.main_metric}</span>`],
    ["Model", registered.length > 0 && html`<ul>${models(registered, tasks)}</ul>`],
    ["Endpoint", endpoint && (endpoint.metadata?.resourceName ?? endpoint.uri)],
  ].filter(([, value]) => value);
  if (!facts.length && !trained) return null;
  return html`<section class="outcome" aria-label="Overview">
    <h2 class="hidden">Overview</h2>
    <div>
      ${
        replica &&
        html`<p>Training: step ${count(replica.step)} of ${count(replica.num_steps)}${
          replica.seconds_left > 0 && `, ${duration(replica.seconds_left)} left`
        }</p>
        <progress value=${replica.step} max=${replica.num_steps} aria-label="Progress of the training"></progress>`
      }
      <${Values} values=${facts} />
    </div>
    <${Training} job=${job.job} steps=${job.steps} only=${curveOf(job.steps)} />
  </section>`;
}

/** The figure whose curve is shown: of validation, if it has any. @param {Map<string, any>} steps */
const curveOf = (steps) => {
  const names = [...steps.values()].flatMap((each) => each.names);
  return ["score", "accuracy"].find((each) => names.includes(`validation_${each}`)) ?? "loss";
};

/**
 * The metrics, models and outputs of a run, with their steps.
 * @param {{run: ShownRun, tasks: Map<string, ShownEntry>}} props
 */
export function Results({ run, tasks }) {
  const outputs = Object.entries(run.outputs?.parameters ?? {}).map(([name, value]) => [
    name === "Output" ? "Return value of the pipeline" : name,
    value,
  ]);
  if (!run.metrics.length && !run.models.length && !outputs.length) return null;
  return html`<section class="results" aria-label="Results">
    ${
      run.metrics.length > 0 &&
      html`<h2>Metrics</h2>
      <${Values} look="values figures" values=${metrics(run.metrics, tasks)} />`
    }
    ${run.models.length > 0 && html`<h2>Models</h2><ul class="plain">${models(run.models, tasks)}</ul>`}
    ${outputs.length > 0 && html`<h2>Outputs</h2><${Values} values=${outputs} />`}
  </section>`;
}

/** The images that a model is most wrong about. @param {{run: any, tasks: Map<string, any>}} props */
export function Mistakes({ run, tasks }) {
  const step = [...tasks.values()].findLast((each) => each.outputs.artifacts.predictions?.length);
  const path = step ? `/local/runs/${run.id}/mistakes?task=${encodeURIComponent(step.path)}` : null;
  const { data } = useLoad(path);
  if (!data?.mistakes.length) return null;
  return html`<section class="results" aria-label="Worst mistakes">
    <h2>Worst mistakes</h2>
    <p class="muted">The images of which ${step?.title} is most certain and wrong: label, answer and probability.</p>
    <ul class="mistakes">${data.mistakes.map(
      (
        /** @type {Mistake} */ { file_name, label, predicted, probability, image },
        /** @type {number} */ index,
      ) => html`<li key=${index}>
        <img src=${image} alt=${file_name} title=${file_name} />
        <span class="muted">label</span> <bdi>${label}</bdi><br />
        <span class="muted">answer</span> <strong><bdi>${predicted}</bdi></strong> ${percent(probability)}</li>`,
    )}</ul>
  </section>`;
}

/** @param {{run: any, defaults?: Record<string, any>, unknown: string}} props */
export function Summary({ run, defaults, unknown }) {
  const values = run.parameters ?? {};
  const names = Object.keys(values).sort();
  const changed = names.filter(
    (name) => defaults !== undefined && JSON.stringify(defaults[name]) !== JSON.stringify(values[name]),
  );
  const others = names.filter((name) => !changed.includes(name));
  return html`<section class="card details" aria-label="Summary of the run">
    ${
      unknown &&
      html`<${Notice} kind="warn">The run ${
        isFinal(run.state) ? "has no" : "has not reached the"
      } step <bdi>${unknown}</bdi>.<//>`
    }
    <h2>Parameters</h2>
    ${!names.length && html`<p class="muted">The pipeline has no parameters.</p>`}
    <${Values} values=${changed.map((name) => changedOne(name, values, defaults ?? {}))} />
    ${
      others.length > 0 &&
      html`<details><summary>${plural(others.length, "parameter")} as in the file</summary>
        <${Values} values=${others.map((name) => [name, values[name]])} /></details>`
    }
    <h2>Pipeline</h2><${Values} values=${{ File: run.file, "SHA-256": run.sha256?.slice(0, 12) }} />
    ${
      run.warnings?.length > 0 &&
      html`<h2>Differences from Vertex AI</h2>
      <ul class="plain">${run.warnings.slice(0, MOST).map((/** @type {string} */ text) => html`<li>${text}</li>`)}</ul>`
    }
  </section>`;
}

/**
 * A parameter with another value than the file gives.
 * @param {string} name @param {Record<string, any>} values @param {Record<string, any>} defaults
 */
function changedOne(name, values, defaults) {
  const isGiven = !(name in defaults);
  return [
    html`<${Name} text=${name} /> <span class="tag">${isGiven ? "given" : "changed"}</span>`,
    html`<div><${Value} value=${values[name]} />
      ${!isGiven && html`<p class="muted small">Default: <${Value} value=${defaults[name]} /></p>`}</div>`,
  ];
}

/** A step. @param {{task: string}} of @param {Map<string, ShownEntry>} tasks */
const stepOf = ({ task }, tasks) => html`<div class="muted small"><bdi>${tasks.get(task)?.title ?? task}</bdi></div>`;

const metrics = (/** @type {ShownRun["metrics"]} */ found, /** @type {Map<string, ShownEntry>} */ tasks) =>
  found.slice(0, MOST).map((each) => [html`<${Name} text=${each.name} />${stepOf(each, tasks)}`, figure(each.value)]);

/** The models; those that have a version in the registry come first. */
const models = (/** @type {ShownRun["models"]} */ found, /** @type {Map<string, ShownEntry>} */ tasks) =>
  [...found]
    .sort((a, b) => Number(!a.resource_name) - Number(!b.resource_name))
    .slice(0, MOST)
    .map((each) => {
      const [id, version] = (each.resource_name?.split("/").at(-1) ?? "").split("@");
      const title = version
        ? html`<a href=${report ? beside("..", "models", id, version, "") : link(["models", id, version])}>
            <bdi>${id}</bdi> version ${version}</a>`
        : html`<bdi>${each.uri}</bdi>`;
      return html`<li>${title}${stepOf(each, tasks)}</li>`;
    });
