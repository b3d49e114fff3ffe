// One run while it runs and afterwards: what it is doing, its graph and steps, and everything about the chosen step.

import { Graph, useGraph } from "../graph/graph.js";
import { useJob } from "../jobs/live_job.js";
import { beside, report } from "../server/report.js";
import { get, post, remove, useAction, useEvents, useLoad } from "../server/server.js";
import {
  Asking,
  Code,
  Confirm,
  Dialog,
  Duration,
  Facts,
  go,
  html,
  Input,
  isFinal,
  Loaded,
  LongText,
  link,
  Notice,
  Page,
  Problem,
  plain,
  replace,
  Tabs,
  TextArea,
  Time,
  useMemo,
  useState,
} from "../ui/ui.js";
import { Artifact } from "./artifact.js";
import { Step, Steps } from "./step.js";
import { Mistakes, Outcome, Results, Summary } from "./summary.js";

/** @type {Record<string, string>} */
/** @type {Record<number, string>} */
const SIGNALS = { 2: "Ctrl-C (SIGINT)", 15: "SIGTERM, from another program" };

/** The view with the report of the evaluation. */
const REPORT = "report";

const PARENT = report ? undefined : ["Runs", "#/runs"];

/** @param {ViewProps} props */
export default function Run({ params, query }) {
  const { id, task = "" } = params;
  const { data: whole, error } = useLoad(`/local/runs/${encodeURIComponent(id)}`);
  const { run, tasks, problem, isDeleted, job, trained } = useRun(whole ? id : null, task, query.get("file") ?? "");
  if (isDeleted || !run) {
    const reason = isDeleted ? "This run was deleted." : problem || error;
    return html`<${Page} title=${id} parent=${PARENT}><${Loaded} title="No run to show" error=${reason} /><//>`;
  }
  const entry = tasks.get(task);
  const isWhole = !entry && query.get("view") === REPORT;
  const addressOf = (/** @type {Record<string, string>} */ change) =>
    link(["runs", id, ...(task ? [task] : [])], { ...Object.fromEntries(query), ...change });
  return html`<${Page} title=${run.name} state=${run.state} parent=${PARENT}
      actions=${!report && html`<${Actions} run=${run} />`}>
    <div class="run">
      ${problem && html`<${Problem} title="The record cannot be read; this is its last state" error=${problem} />`}
      ${
        !entry &&
        html`${run.outcome && html`<${Ending} of=${run.outcome} state=${run.state} />`}
        ${run.given?.note && html`<${LongText} look="note" text=${run.given.note} />`}
        ${whole.description && html`<${LongText} look="description" text=${whole.description} />`}
        <${Facts} facts=${factsOf(run)} />
        ${run.error && html`<${Failure} run=${run} tasks=${tasks} />`}
        ${report?.resume && ["FAILED", "CANCELLED"].includes(run.state) && html`<${Resume} of=${report} />`}
        <${Outcome} run=${run} tasks=${tasks} trained=${trained} job=${job} />`
      }
      <div class="columns ${entry ? "chosen" : isWhole ? "whole" : ""}">
        <div class="overview">
          <${Overview} run=${run} tasks=${tasks} selected=${task} query=${query} addressOf=${addressOf} />
          ${
            !entry &&
            !isWhole &&
            html`<${Results} run=${run} tasks=${tasks} />
            <${Mistakes} run=${run} tasks=${tasks} />`
          }
        </div>
        ${
          entry
            ? html`<${Step} key=${task} run=${run} entry=${entry} job=${job} query=${query} addressOf=${addressOf} />`
            : !isWhole && html`<${Summary} run=${run} defaults=${whole.defaults} unknown=${task} />`
        }
      </div>
    </div>
  <//>`;
}

/**
 * Follow a run, and the log and the custom job of one of its steps.
 * @param {string | null} run - Null: it is not known yet whether it exists.
 * @param {string} task - Path of the chosen step; empty for none.
 * @param {string} chosen - Name of the log; empty for the first.
 * @returns {{run: any, tasks: Map<string, any>, problem: string, isDeleted: boolean, trained: any, job: Live}} `run`:
 *   null until the first event. `problem`: why the record cannot be read. `trained`: the entry whose job is followed.
 */
function useRun(run, task, chosen) {
  const [record, setRecord] = useState(() => ({ run: null, tasks: new Map(), problem: "", isDeleted: false }));
  const trained = task ? record.tasks.get(task) : [...record.tasks.values()].findLast((each) => each.custom_job);
  // A failed step begins with the log that has its error.
  const { failed_task, failure } = /** @type {any} */ (record.run ?? {});
  const file = chosen || (task && failed_task === task && failure?.log.slice(task.length + 1)) || "";
  const [job, handlers] = useJob(task || (trained?.path ?? ""), file);
  const trains = trained?.custom_job && { job: trained.path };
  const query = run && { run, ...(task && { log: task }), ...(file && { file }), ...trains };
  useEvents(query || null, {
    ...handlers,
    run: ({ run, tasks, is_first }) =>
      setRecord((previous) => {
        const known = new Map(is_first ? [] : previous.tasks);
        for (const each of tasks) known.set(each.path, each);
        return { run, tasks: known, problem: "", isDeleted: false };
      }),
    problem: ({ text }) => setRecord((previous) => ({ ...previous, problem: text })),
    end: () => setRecord((previous) => ({ ...previous, isDeleted: true })),
  });
  return { ...record, job, trained };
}

/** @param {ShownRun} run */
function factsOf(run) {
  const times = run.resume_times?.length ?? 0;
  return [
    ["Pipeline", run.pipeline_name],
    ["Created", html`<${Time} at=${run.create_time} />`],
    ["Ended", run.end_time && html`<${Time} at=${run.end_time} />`],
    ["Duration", html`<${Duration} of=${run} />`],
    ["Region", run.region],
    ["Run ID", run.id !== run.name && run.id],
    ["Schedule", run.schedule && html`<a href="#/schedules">${run.schedule.split("/").at(-1)}</a>`],
    ["Stopped by", run.stopped_by_signal && (SIGNALS[run.stopped_by_signal] ?? `signal ${run.stopped_by_signal}`)],
    ["Resumed", times > 1 ? `${times} times` : times === 1 && "once"],
  ];
}

/** The command that resumes a run, or runs it with another parameter. @param {{of: any}} props */
const Resume = ({ of: { resume, wrong_parameter } }) =>
  html`<div class="resume"><h2>${wrong_parameter ? `Correct ${wrong_parameter} and run again` : "Resume the run"}</h2>
    <${Code} text=${resume} /></div>`;

/** The sentence that says what came of a run. @param {{of: any, state: string}} props */
function Ending({ of: { kind, sentence, earlier_run: run }, state }) {
  const address = report ? beside("..", run, "run.html") : link(["runs", run]);
  return html`<${Notice} kind=${state !== "SUCCEEDED" || kind === "not_made" ? "warn" : "info"}>
    <bdi>${sentence}</bdi>${run && html` <a href=${address}>Show that run</a>`}<//>`;
}

/** The error of a run, with the end of the log that explains it. @param {{run: any, tasks: Map<string, any>}} props */
function Failure({ run, tasks }) {
  const failed = [...tasks.values()].filter((each) => each.kind === "step" && each.state === "FAILED");
  return html`<section class="notice bad failure" role="alert" aria-label="Why the run failed">
    <strong>${run.error}</strong>
    ${
      run.failure?.lines?.length > 0 &&
      html`<div class="tail" tabindex="0" role="region" aria-label="End of the log">
      <pre>${run.failure.lines.join("\n")}</pre></div>`
    }
    ${
      failed.length > 0 &&
      html`<p>Failed ${failed.length === 1 ? "step" : "steps"}:${" "}
      ${failed
        .slice(0, 10)
        .map(
          (each, index) =>
            html`${index > 0 && ", "}<a key=${each.path} href=${link(["runs", run.id, each.path])}>${each.title}</a>`,
        )}
      ${failed.length > 10 && ` and ${failed.length - 10} more`}
    </p>`
    }
  </section>`;
}

/**
 * The graph or the table of steps; both show the same states.
 * @param {{run: any, tasks: Map<string, any>, selected: string, query: URLSearchParams,
 *   addressOf: (change: Record<string, string>) => string}} props
 */
function Overview({ run, tasks, selected, query, addressOf }) {
  const view = query.get("view") ?? "";
  const pages = selected ? [] : evaluationPages(tasks);
  const tabs = [
    { id: "graph", title: "Graph" },
    { id: "steps", title: "Steps" },
    ...(pages.length ? [{ id: REPORT, title: "Evaluation report" }] : []),
  ];
  const usual = matchMedia("(max-width: 800px)").matches ? "steps" : "graph";
  const shown = tabs.some(({ id }) => id === view) ? view : usual;
  return html`<section aria-label="Steps of the run">
    <${Tabs} label="How the steps are shown" tabs=${tabs} selected=${shown}
      onSelect=${(view) => replace(addressOf({ view }))}>
      ${
        shown === "graph" &&
        html`<${GraphOf} run=${run} tasks=${tasks} selected=${selected}
          onSelect=${(path) => go(link(["runs", run.id, ...(path ? [path] : [])], { view }))} />`
      }
      ${
        shown === REPORT &&
        pages.map(
          ({ place, artifact }) => html`<${Artifact} key=${place.task + place.name} run=${run.id} place=${place}
            artifact=${artifact} isOpen />`,
        )
      }
      ${shown === "steps" && html`<${Steps} run=${run} tasks=${tasks} selected=${selected} view=${view} />`}
    <//>
  </section>`;
}

/** The pages that evaluations wrote: steps with metrics of classes, or called so. @param {Map<string, any>} tasks */
const evaluationPages = (tasks) =>
  [...tasks.values()].flatMap(({ path, name, outputs }) => {
    const artifacts = Object.entries(outputs.artifacts);
    const isOf =
      (/** @type {string} */ kind) =>
      (/** @type {[string, any]} */ [, [first]]) =>
        first?.type.schemaTitle === kind;
    if (!/evaluat/i.test(name ?? path) && !artifacts.some(isOf("system.ClassificationMetrics"))) return [];
    return artifacts
      .filter(isOf("system.HTML"))
      .map(([name, [artifact]]) => ({ place: { task: path, side: "outputs", name, index: 0 }, artifact }));
  });

/** @param {{run: any, tasks: Map<string, any>, selected: string, onSelect: (path: string) => void}} props */
function GraphOf({ run, tasks, selected, onSelect }) {
  const { id, state, resume_times } = run;
  const load = (/** @type {Record<string, string>} */ closed) =>
    get(`/local/runs/${id}/graph?${new URLSearchParams(closed)}`);
  const [graph, toggle] = useGraph(load, `${id} ${resume_times?.length}`);
  const entries = useMemo(() => [...tasks.values()], [tasks]);
  return html`<${Loaded} title="No graph" ...${graph}>${(data) => html`<${Graph} graph=${data} tasks=${entries}
    hasEnded=${isFinal(state)} selected=${selected} onSelect=${onSelect}
    onToggle=${report ? undefined : toggle} />`}<//>`;
}

/** @param {{run: any}} props */
function Actions({ run }) {
  const hasEnded = isFinal(run.state);
  const of = { run };
  return html`
    ${!hasEnded && html`<${Asking} key="stop" verb="Stop" dialog=${Stop} of=${of} />`}
    ${
      hasEnded &&
      plain(run.state) !== "SUCCEEDED" &&
      html`<${Asking} key="retry" class="primary" verb="Retry" dialog=${Retry} of=${of} />`
    }
    <a class="button" href=${link(["create"], { run: run.id })}>Run again</a>
    ${
      hasEnded &&
      run.has_page &&
      html`<a class="button" href=${`/local/runs/${run.id}/report`} title="This view as one file" download>Report</a>`
    }
    <a class="button" href=${link(["compare"], { runs: run.id })}>Compare</a>
    <${Asking} key="note" verb="Name and note" dialog=${Note} of=${of} />
    <${Asking} key="delete" verb="Delete" dialog=${Delete} of=${of} disabled=${!hasEnded}
      title=${hasEnded ? "" : "Stop the run before you delete it"} />`;
}

/** @param {{run: any, onClose: () => void}} props */
function Note({ run, onClose }) {
  const [given, setGiven] = useState(run.given);
  const [save, { isBusy, error }] = useAction(async () => {
    await post(`/local/runs/${run.id}:note`, given);
    onClose();
  });
  const actions = html`<button onClick=${onClose}>Cancel</button>
    <button class="primary" disabled=${isBusy} onClick=${() => save()}>Save</button>`;
  return html`<${Dialog} title="Name and note" onClose=${onClose} actions=${actions}>
    <label class="stacked">Name <${Input} value=${given.name} maxlength="128" placeholder=${run.id}
      onText=${(/** @type {string} */ name) => setGiven({ ...given, name })} /></label>
    <label class="stacked">Note <${TextArea} value=${given.note} maxlength="20000" rows="6"
      onText=${(/** @type {string} */ note) => setGiven({ ...given, note })} /></label>
    <p class="muted small">They are kept beside the record of the run, which does not change.</p>
    ${error && html`<${Problem} error=${error} />`}
  <//>`;
}

/** @param {{run: any, onClose: () => void}} props */
function Stop({ run, onClose }) {
  const [stop, { isBusy, error }] = useAction(async (at_once) => {
    await post(`/local/runs/${run.id}:stop`, { at_once });
    onClose();
  });
  const id = html`<bdi class="mono">${run.id}</bdi>`;
  if (run.is_ending) {
    return html`<${Dialog} title="This run is ending" onClose=${onClose}>
      <p>The server that ran ${id} was killed.</p>
      <p>The last processes of the run end by themselves, within the grace time.</p>
    <//>`;
  }
  if (!run.is_running_here) {
    return html`<${Dialog} title="Stop this run in its terminal" onClose=${onClose}>
      <p>Another process started run ${id}. Only that process can stop it.</p>
      <p>Press Ctrl-C in its terminal: once to stop gracefully, twice to stop at once.</p>
    <//>`;
  }
  const actions = html`
    <button onClick=${onClose}>Cancel</button>
    <button class="danger" disabled=${isBusy} onClick=${() => stop(true)}>Stop at once</button>
    <button class="primary" disabled=${isBusy} onClick=${() => stop(false)}>Stop gracefully</button>`;
  return html`<${Dialog} title="Stop this run?" onClose=${onClose} actions=${actions}>
    <p>Run ${id}</p>
    <p><strong>Gracefully</strong>: its processes get SIGTERM and time to save a checkpoint, as on Vertex AI.</p>
    <p><strong>At once</strong>: its processes are killed. Work since the last checkpoint is lost.</p>
    <p class="muted">Finished steps are kept. Retry resumes the run later.</p>
    ${error && html`<${Problem} error=${error} />`}
  <//>`;
}

/** @param {{run: any, onClose: () => void}} props */
function Retry({ run, onClose }) {
  return html`<${Confirm} title="Retry this run?" action="Retry" isDangerous=${false} onClose=${onClose}
      onConfirm=${() => post(`/local/runs/${run.id}:retry`)}>
    <p>Run <bdi class="mono">${run.id}</bdi> resumes with its original values.</p>
    <p>Finished steps are not repeated. All others start again, and training resumes from its last checkpoint.</p>
    ${run.is_own === false && html`<${Notice}>It will run in this server, not in its terminal.<//>`}
  <//>`;
}

/** @param {{run: any, onClose: () => void}} props */
function Delete({ run, onClose }) {
  const deleted = async () => {
    await remove(`/local/runs/${run.id}`);
    go("#/runs");
  };
  return html`<${Confirm} title="Delete this run?" action="Delete run" onConfirm=${deleted} onClose=${onClose}>
    <p>This deletes run <bdi class="mono">${run.id}</bdi> with its record, its logs and the outputs of its steps:</p>
    <p><bdi class="mono">${run.work_dir}/${run.id}</bdi></p>
    <p>Registered models keep their own copies. This cannot be undone.</p>
  <//>`;
}
