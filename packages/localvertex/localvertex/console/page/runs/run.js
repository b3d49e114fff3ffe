// One run while it runs and afterwards: what it is doing, its graph and steps, and everything about the chosen step.

import { Graph, useGraph } from "../graph/graph.js";
import { Log, offsetIn } from "../logs/log.js";
import { get } from "../server/api.js";
import { useLoad } from "../server/load.js";
import { go, link } from "../ui/address.js";
import { html, useEffect, useMemo, useState } from "../ui/html.js";
import { Frame, isFinal, Loading, Page, Problem, Section, State, Tabs } from "../ui/ui.js";
import { Actions } from "./actions.js";
import { Facts, Failure } from "./header.js";
import { useRun } from "./live_run.js";
import { Step } from "./step.js";
import { Steps } from "./steps.js";
import { Summary } from "./summary.js";

/** @param {{params: Record<string, string>, query: URLSearchParams}} props */
export default function Run({ params, query }) {
  const { id, task = "" } = params;
  const { data: whole, error } = useLoad(`/local/runs/${encodeURIComponent(id)}`);
  const live = useRun(whole ? id : null, task, query.get("file") ?? "");
  const { run, tasks, problem, isDeleted } = live;
  const parent = { title: "Runs", href: link(["runs"]) };
  if (isDeleted || !run) {
    const reason = isDeleted ? "This run was deleted." : problem || error;
    return html`<${Page} title=${id} parent=${parent}>
      ${reason ? html`<${Problem} title="No run to show" error=${reason} />` : html`<${Loading} />`}
    <//>`;
  }
  const entry = tasks.get(task);
  const heading = html`<bdi>${run.name}</bdi> <${State} state=${run.state} />`;
  return html`<${Page} title=${run.name} heading=${heading} parent=${parent} actions=${html`<${Actions} run=${run} />`}>
    <div class="run">
      ${problem && html`<${Problem} title="The record cannot be read; this is its last state" error=${problem} />`}
      <${Facts} run=${run} description=${whole?.description} />
      <${Failure} run=${run} tasks=${tasks} />
      <div class="columns">
        <${Overview} run=${run} tasks=${tasks} selected=${task} query=${query} />
        ${entry && html`<${Step} key=${task} run=${run} entry=${entry} view=${query.get("view")} />`}
        ${!entry && html`<${Summary} run=${run} defaults=${whole?.defaults} unknown=${task} />`}
      </div>
      ${entry?.custom_job && html`<${JobOf} run=${run} task=${task} job=${live.job} steps=${live.steps} />`}
      ${entry?.kind === "step" && html`<${LogOf} live=${live} run=${run} entry=${entry} query=${query} />`}
    </div>
  <//>`;
}

/** @param {{live: import("./live_run.js").Live, run: any, entry: any, query: URLSearchParams}} props */
function LogOf({ live, run, entry, query }) {
  const addressOf = (/** @type {Record<string, string>} */ change) =>
    link(["runs", run.id, entry.path], { ...Object.fromEntries(query), ...change });
  return html`<${Section} title=${html`Log of <bdi>${entry.display_name}</bdi>`}>
    <${Log} key=${`${entry.path} ${query.get("file") ?? ""}`} path=${`/local/runs/${run.id}/log`} task=${entry.path}
      log=${live.log} setLog=${live.setLog} at=${offsetIn(query)} addressOf=${addressOf}
      none=${withoutLog(entry)} />
  <//>`;
}

/** Why a step has no log. @param {any} entry */
function withoutLog(entry) {
  if (entry.cache_hit) return "No log: the outputs came from the cache.";
  return entry.end_time ? "This step wrote no log." : "No log yet.";
}

/**
 * The graph, the table of steps, or the report of a run; all show the same states.
 * @param {{run: any, tasks: Map<string, any>, selected: string, query: URLSearchParams}} props
 */
function Overview({ run, tasks, selected, query }) {
  const shown = query.get("view") ?? (matchMedia("(max-width: 800px)").matches ? "steps" : "graph");
  const show = (/** @type {Record<string, string>} */ change) =>
    go(link(["runs", run.id, ...(selected ? [selected] : [])], { ...Object.fromEntries(query), ...change }), {
      replace: true,
    });
  const select = (/** @type {string} */ path) => {
    go(link(["runs", run.id, ...(path ? [path] : [])], { view: query.get("view") }));
  };
  const count = [...tasks.values()].filter((each) => each.kind === "step").length;
  const tabs = [
    { id: "graph", title: "Graph" },
    { id: "steps", title: "Steps", count },
  ];
  if (run.has_page && isFinal(run.state)) tabs.push({ id: "report", title: "Report" });
  return html`<section class="overview" aria-label="Steps of the run">
    <${Tabs} label="How the steps are shown" tabs=${tabs} selected=${shown}
      onSelect=${(/** @type {string} */ view) => show({ view })}>
      ${shown === "graph" && html`<${GraphOf} run=${run} tasks=${tasks} selected=${selected} onSelect=${select} />`}
      ${shown === "steps" && html`<${Steps} run=${run} tasks=${tasks} selected=${selected} query=${query} />`}
      ${shown === "report" && html`<${Frame} src=${`/runs/${run.id}/run.html`} title="Report of the run" hasScripts />`}
    <//>
  </section>`;
}

/** @param {{run: any, tasks: Map<string, any>, selected: string, onSelect: (path: string) => void}} props */
function GraphOf({ run, tasks, selected, onSelect }) {
  const load = (/** @type {string} */ closed) => get(`/local/runs/${run.id}/graph?${new URLSearchParams({ closed })}`);
  const { graph, error, toggle } = useGraph(load, [run.id]);
  const entries = useMemo(() => [...tasks.values()], [tasks]);
  if (error) return html`<${Problem} title="No graph" error=${error} />`;
  if (!graph) return html`<${Loading} />`;
  return html`<${Graph} graph=${graph} tasks=${entries} selected=${selected}
    onSelect=${onSelect} onToggle=${toggle} />`;
}

/**
 * The custom job of a step. Its file is loaded when it is first shown, because few steps have one.
 * @param {{run: any, task: string, job: any, steps: Map<string, any>}} props
 */
function JobOf(props) {
  const [Job, setJob] = useState(/** @type {any} */ (null));
  useEffect(() => {
    import("../jobs/replicas.js").then((part) => setJob(() => part.Job));
  }, []);
  return Job && html`<${Job} ...${props} />`;
}
