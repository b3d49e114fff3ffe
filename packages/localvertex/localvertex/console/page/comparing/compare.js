// Runs side by side, live: their letters and states; any can be added or removed, and differences are from one of them.

import { get, useEvents, useLoad } from "../server/server.js";
import {
  Duration,
  Empty,
  html,
  isFinal,
  Loaded,
  link,
  Notice,
  Page,
  Problem,
  replace,
  Select,
  State,
  Table,
  Time,
  useEffect,
  useRef,
  useState,
} from "../ui/ui.js";
import { Curves } from "./curves.js";
import { Letter } from "./letters.js";
import { curvesOf, metricsOf, parametersOf, stepsOf } from "./rows.js";
import { Scatter } from "./scatter.js";
import { Metrics, Parameters, Steps } from "./tables.js";

const [MIN_RUNS, MAX_RUNS, NUM_OFFERED] = [2, 24, 500];

const LIVE_MS = 5000;

/** @param {ViewProps} props */
export default function Compare({ query }) {
  const ids = [...new Set((query.get("runs") ?? "").split(",").filter(Boolean))];
  const base = Math.max(ids.indexOf(query.get("base") ?? ""), 0);
  const list = useLoad(`/local/runs?page_size=${NUM_OFFERED}`);
  const offered = /** @type {RunRow[]} */ (list.data?.runs ?? []);
  const rows = ids.map((id) => offered.find((row) => row.id === id) ?? { id, name: id });
  const found = useRecords(ids, rows, list);
  const show = (/** @type {string[]} */ runs, base = query.get("base")) =>
    replace(link(["compare"], { runs: runs.join(","), base }));
  const others = offered.filter(({ id }) => !ids.includes(id));
  return html`<${Page} title="Compare runs" parent=${["Runs", "#/runs"]}>
    <div class="compare">
      ${list.error && html`<${Problem} title="The list of runs cannot be read" error=${list.error} />`}
      ${ids.length > 0 && html`<${Table} caption="Compared runs" columns=${columns(ids, base, show)} rows=${rows} />`}
      ${
        ids.length < MAX_RUNS &&
        html`<div class="toolbar">
          <${Select} aria-label="Add a run" key=${ids.join()} value="" onText=${(id) => show([...ids, id])} choices=${[
            ["", "Add a run…"],
            ...others.map(({ id, name }) => [id, name === id ? id : `${name} (${id})`]),
          ]} />
        </div>`
      }
      ${
        ids.length > MAX_RUNS && html`<${Notice} kind="warn">At most ${MAX_RUNS} runs can be compared; remove some.<//>`
      }
      ${
        ids.length < MIN_RUNS
          ? html`<${Empty} title="Choose two or more runs" />`
          : html`<${Loaded} title="These runs cannot be compared" ...${found}>${(runs) =>
              html`<${Comparison} runs=${runs} base=${base} />`}<//>`
      }
    </div>
  <//>`;
}

/**
 * @param {string[]} ids @param {number} base @param {(ids: string[], base?: string) => void} show
 * @returns {Column[]}
 */
const columns = (ids, base, show) => [
  {
    title: "Run",
    isName: true,
    cell: ({ id, name, pipeline }, index) => html`<${Letter} index=${index} />
      <a class="title" href=${link(["runs", id])}><bdi>${name}</bdi></a>
      <div class="small muted"><bdi>${pipeline}</bdi></div>`,
  },
  { title: "State", cell: ({ state }) => state && html`<${State} state=${state} />` },
  { title: "Created", isWideOnly: true, cell: ({ create_time }) => html`<${Time} at=${create_time} />` },
  { title: "Duration", isNumber: true, isWideOnly: true, cell: (row) => html`<${Duration} of=${row} />` },
  {
    title: "Baseline",
    cell: ({ id, name }, index) => html`<input type="radio" name="base" checked=${index === base}
      aria-label=${`Differences from ${name}`} onChange=${() => show(ids, id)} />`,
  },
  {
    title: "Remove",
    cell: ({ id, name }) => html`<button class="icon" onClick=${() => show(ids.filter((each) => each !== id))}
        aria-label=${`Remove ${name}`}>
      <svg viewBox="0 0 18 18" aria-hidden="true"><path d="M5 5l8 8M13 5l-8 8" /></svg></button>`,
  },
];

/** The record of a run, and its custom jobs with their curves. @param {string} id */
async function read(id) {
  const path = `/local/runs/${encodeURIComponent(id)}`;
  const run = /** @type {ShownRun} */ (await get(path));
  if (run.problem) throw new Error(run.problem);
  const trained = run.tasks.filter(({ custom_job }) => custom_job);
  const jobs = trained.map(
    async ({ path: task }) =>
      /** @type {[string, any]} */ ([task, await get(`${path}/job?${new URLSearchParams({ task })}`)]),
  );
  return { ...run, jobs: new Map(await Promise.all(jobs)) };
}

/**
 * The records of the runs; those that have changed or are running are read again.
 * @param {string[]} ids @param {ComparedRow[]} rows @param {ReturnType<typeof useLoad>} list
 */
function useRecords(ids, rows, list) {
  const [found, setFound] = useState(/** @type {{data?: ComparedRun[], error?: any, of?: string}} */ ({}));
  const order = useRef({ begun: 0, shown: 0 });
  const key = ids.join();
  const isLive = rows.some(({ state }) => state && !isFinal(state));
  useEvents({}, { runs: ({ version }) => version !== list.data?.version && list.reload(version) });
  useEffect(() => {
    const timer = isLive && setInterval(() => document.hidden || list.reload(), LIVE_MS);
    return () => clearInterval(timer || 0);
  }, [isLive]);
  useEffect(() => {
    if (!list.data || ids.length < MIN_RUNS || ids.length > MAX_RUNS) return;
    const known = (/** @type {ComparedRow} */ { id, state, end_time }) =>
      state && isFinal(state) && found.data?.find((run) => run.id === id && run.end_time === end_time);
    const number = ++order.current.begun;
    // An answer counts until a newer one is here: else frequent changes would keep slow answers away for good.
    const keep = (/** @type {{data?: ComparedRun[], error?: any}} */ change) => {
      if (number < order.current.shown) return;
      order.current.shown = number;
      setFound((before) => ({ ...before, error: null, ...change, of: key }));
    };
    Promise.all(rows.map(async (row) => known(row) || read(row.id))).then(
      (data) => keep({ data }),
      (error) => keep({ error }),
    );
  }, [list.data, key]);
  return {
    data: found.data?.map(({ id }) => id).join() === key && found.data,
    error: found.of === key && found.error,
  };
}

/** @param {{runs: ComparedRun[], base: number}} props */
function Comparison({ runs, base }) {
  const [steps, parameters, metrics] = [stepsOf(runs), parametersOf(runs), metricsOf(runs, base)];
  return html`
    ${
      new Set(runs.map((run) => run.pipeline_name)).size > 1 &&
      html`<${Notice}>The runs are of different pipelines.<//>`
    }
    <${Metrics} runs=${runs} rows=${metrics} base=${base} />
    <${Parameters} runs=${runs} rows=${parameters} />
    <${Scatter} runs=${runs} parameters=${parameters} metrics=${metrics} />
    <${Curves} steps=${steps.rows} curves=${curvesOf(runs)} />
    <${Steps} runs=${runs} ...${steps} />`;
}
