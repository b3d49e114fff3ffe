// Two to eight runs side by side: their letters, states and pipelines; one can be added or removed.

import { get, useLoad } from "../server/server.js";
import {
  Duration,
  Empty,
  html,
  Loaded,
  link,
  Notice,
  Page,
  Problem,
  replace,
  Select,
  State,
  Time,
  useEffect,
  useState,
} from "../ui/ui.js";
import { Curves } from "./curves.js";
import { Letter, letter } from "./letters.js";
import { curvesOf, metricsOf, parametersOf, stepsOf } from "./rows.js";
import { Metrics, Parameters, Steps } from "./tables.js";

const [MIN_RUNS, MAX_RUNS] = [2, 8];

const NUM_OFFERED = 500;

/** @param {ViewProps} props */
export default function Compare({ query }) {
  const ids = (query.get("runs") ?? "").split(",").filter(Boolean);
  return html`<${Page} title="Compare runs" parent=${["Runs", "#/runs"]}>
    <div class="compare">
      <${Chosen} ids=${ids} />
      ${ids.length >= MIN_RUNS && ids.length <= MAX_RUNS && html`<${Comparison} key=${ids.join()} ids=${ids} />`}
      ${ids.length < MIN_RUNS && html`<${Empty} title="Choose two or more runs" />`}
      ${
        ids.length > MAX_RUNS && html`<${Notice} kind="warn">At most ${MAX_RUNS} runs can be compared; remove some.<//>`
      }
    </div>
  <//>`;
}

/** @param {{ids: string[]}} props */
function Chosen({ ids }) {
  const { data, error } = useLoad(`/local/runs?page_size=${NUM_OFFERED}`);
  const rows = /** @type {RunRow[]} */ (data?.runs ?? []);
  const change = (/** @type {string[]} */ chosen) => replace(link(["compare"], { runs: chosen.join(",") }));
  const others = rows
    .filter(({ id }) => !ids.includes(id))
    .map(({ id, name }) => [id, name === id ? id : `${name} (${id})`]);
  return html`
    ${error && html`<${Problem} title="The list of runs cannot be read" error=${error} />`}
    <ul class="chosen" aria-label="Compared runs">
      ${ids.map(
        (id, index) => html`<${Card} key=${id} id=${id} index=${index} row=${rows.find((row) => row.id === id)}
          onRemove=${() => change(ids.filter((each) => each !== id))} />`,
      )}
    </ul>
    ${
      ids.length < MAX_RUNS &&
      html`<div class="toolbar">
        <${Select} aria-label="Add a run" key=${ids.join()} value="" choices=${[["", "Add a run…"], ...others]}
          onText=${(id) => id && change([...ids, id])} />
      </div>`
    }`;
}

/** @param {{id: string, index: number, row?: RunRow, onRemove: () => void}} props */
function Card({ id, index, row, onRemove }) {
  return html`<li class="card">
    <${Letter} index=${index} />
    <div>
      <a class="title" href=${link(["runs", id])}><bdi>${row?.name ?? id}</bdi></a>
      ${
        row &&
        html`<p class="small"><${State} state=${row.state} /></p>
        <p class="small muted"><bdi>${row.pipeline}</bdi></p>
        <p class="small muted"><${Time} at=${row.create_time} /> · <${Duration} of=${row} /></p>`
      }
    </div>
    <button class="icon" onClick=${onRemove} aria-label=${`Remove run ${letter(index)}, ${row?.name ?? id}`}>
      <svg viewBox="0 0 18 18" aria-hidden="true"><path d="M5 5l8 8M13 5l-8 8" /></svg>
    </button>
  </li>`;
}

/** The record of a run, and its custom jobs with their curves. @param {string} id */
async function read(id) {
  const path = `/local/runs/${encodeURIComponent(id)}`;
  const run = await get(path);
  if (run.problem) throw new Error(run.problem);
  const trained = run.tasks.filter((/** @type {any} */ { custom_job }) => custom_job);
  const jobs = await Promise.all(
    trained.map(async (/** @type {any} */ { path: task }) => [
      task,
      await get(`${path}/job?${new URLSearchParams({ task })}`),
    ]),
  );
  return { ...run, jobs: new Map(jobs) };
}

/** @param {{ids: string[]}} props */
function Comparison({ ids }) {
  const [found, setFound] = useState(/** @type {{data?: any[], error?: Error}} */ ({}));
  useEffect(() => {
    Promise.all(ids.map(read)).then(
      (data) => setFound({ data }),
      (error) => setFound({ error }),
    );
  }, []);
  return html`<${Loaded} title="These runs cannot be compared" ...${found}>${(/** @type {any[]} */ runs) => {
    const steps = stepsOf(runs);
    const names = new Set(runs.map((run) => run.pipeline_name));
    return html`
      ${names.size > 1 && html`<${Notice}>The runs are of different pipelines.<//>`}
      <${Metrics} runs=${runs} rows=${metricsOf(runs)} />
      <${Parameters} runs=${runs} rows=${parametersOf(runs)} />
      <${Curves} steps=${steps.rows} curves=${curvesOf(runs)} />
      <${Steps} runs=${runs} ...${steps} />`;
  }}<//>`;
}
