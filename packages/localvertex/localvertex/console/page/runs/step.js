// The steps of a run as a table with their times, and everything about one: log, curves, replicas, inputs and outputs.

import { loopOf, textOf } from "../graph/states.js";
import { Replicas, Training } from "../jobs/replicas.js";
import { Log, offsetIn } from "../logs/log.js";
import { errorIn } from "../logs/text.js";
import { Duration, Facts, html, isFinal, kind, link, replace, State, Table, Tabs, Time, Values } from "../ui/ui.js";
import { Artifact } from "./artifact.js";

const MOST_ROWS = 1000;

/** Artifacts whose content is shown at once: the first of those that the page can show. */
const OPEN = 3;
const SHOWN = ["system.HTML", "system.Markdown", "system.Metrics", "system.ClassificationMetrics"];

/**
 * The same as the graph, for narrow screens and screen readers.
 * @param {{run: any, tasks: Map<string, any>, selected: string, view: string}} props
 */
export function Steps({ run, tasks, selected, view }) {
  const rows = inOrder(tasks);
  /** @type {Column[]} */
  const columns = [
    {
      title: "Step",
      isName: true,
      cell: ({ depth, entry }) => html`<a class="nested"
        style=${{ "--depth": Math.min(depth, 8) }} href=${link(["runs", run.id, entry.path], { view })}
        aria-current=${entry.path === selected ? "true" : undefined}><bdi>${nameOf(entry, tasks)}</bdi></a>`,
    },
    { title: "State", cell: ({ entry }) => html`<${State} state=${entry.state} />` },
    { title: "Duration", isNumber: true, cell: ({ entry }) => html`<${Duration} of=${entry} />` },
    {
      title: "When",
      isWideOnly: true,
      cell: ({ entry }) => html`<${When} run=${run} entry=${entry} />`,
    },
    { title: "Remark", isWideOnly: true, cell: ({ entry }) => html`<span class="muted">${remark(entry)}</span>` },
  ];
  return html`<div class="steps">
    <${Table} caption="Steps of the run" columns=${columns} rows=${rows.slice(0, MOST_ROWS)}
      keyOf=${({ entry }) => entry.path} selected=${new Set([selected])} />
    ${rows.length > MOST_ROWS && html`<p class="muted">and ${rows.length - MOST_ROWS} more; run.json contains all</p>`}
  </div>`;
}

/**
 * The name of a step, or the number of an iteration with its item.
 * @param {ShownEntry} entry @param {Map<string, ShownEntry>} tasks
 */
function nameOf(entry, tasks) {
  if (entry.kind !== "iteration") return entry.display_name;
  const text = textOf(entry, tasks.get(loopOf(entry)));
  return `Item ${entry.path.split("/").at(-1)}${text && `: ${text}`}`;
}

/**
 * When a step ran, in the time of its run; Duration says it in words.
 * @param {{run: ShownRun, entry: ShownEntry}} props
 */
function When({ run, entry }) {
  const [begin, started] = [run.start_time, entry.start_time].map((each) => Date.parse(each ?? ""));
  const until = (/** @type {ShownRun | ShownEntry} */ { state, end_time }) =>
    isFinal(state) ? Date.parse(end_time ?? "") : Date.now();
  const part = (/** @type {number} */ ms) =>
    `${(100 * Math.min(1, Math.max(0, ms / (until(run) - begin || 1)))).toFixed(2)}%`;
  if (!started || !begin) return null;
  return html`<svg class="when" aria-hidden="true" style=${{ "--of": `var(--${kind(entry.state)})` }}>
    <rect x=${part(started - begin)} width=${part(until(entry) - started || 0)} height="100%" /></svg>`;
}

/** What a row shows besides the state. @param {ShownEntry} entry */
const remark = ({ cache_hit, attempts, note }) =>
  [cache_hit && "outputs from the cache", (attempts ?? 0) > 1 && `${attempts} attempts`, note]
    .filter(Boolean)
    .join(", ");

/**
 * Return the entries, parents before children: iterations by number, all others by the first start in them, because a
 * resumed group starts after its finished steps.
 * @param {Map<string, ShownEntry>} tasks
 */
function inOrder(tasks) {
  /** @type {Map<string, ShownEntry[]>} */
  const children = new Map();
  for (const each of tasks.values()) {
    const parent = each.path.slice(0, Math.max(0, each.path.lastIndexOf("/")));
    children.set(parent, [...(children.get(parent) ?? []), each]);
  }
  const number = (/** @type {ShownEntry} */ entry) => Number(entry.path.slice(entry.path.lastIndexOf("/") + 1));
  /** @type {Map<string, string>} */
  const starts = new Map();
  for (const { path, start_time } of [...tasks.values()].reverse()) {
    const times = [start_time ?? "~", ...(children.get(path) ?? []).map((each) => starts.get(each.path) ?? "~")];
    starts.set(path, times.sort()[0]);
  }
  const start = (/** @type {ShownEntry} */ { path }) => starts.get(path) ?? "~";
  /** @param {string} parent @param {number} depth @returns {{entry: ShownEntry, depth: number}[]} */
  const below = (parent, depth) =>
    (children.get(parent) ?? [])
      .sort((one, other) =>
        one.kind === "iteration" && other.kind === "iteration"
          ? number(one) - number(other)
          : Number(start(one) > start(other)) - Number(start(one) < start(other)),
      )
      .flatMap((entry) => [{ entry, depth }, ...below(entry.path, depth + 1)]);
  return below("", 0);
}

/** @param {ShownEntry} entry */
function withoutLog(entry) {
  if (entry.cache_hit) return "No log: the outputs came from the cache.";
  if (entry.state === "GIVEN") return "No log: the outputs are given.";
  return entry.end_time ? "This step wrote no log." : "No log yet.";
}

/** @param {StepProps} props */
export function Step({ run, entry, job, query, addressOf }) {
  const [isStep, file, task] = [entry.kind === "step", query.get("file") ?? "", entry.path];
  const tabs = [
    isStep && { id: "log", title: "Log" },
    entry.custom_job && { id: "curves", title: "Curves" },
    entry.custom_job && { id: "replicas", title: "Replicas" },
    { id: "values", title: "Inputs and outputs" },
  ].filter(Boolean);
  const tab = (tabs.find(({ id }) => id === query.get("tab")) ?? tabs[0]).id;
  const at = offsetIn(query) ?? (entry.state === "FAILED" ? errorIn(job.log) : null);
  return html`<section class="card details" aria-label=${`Step ${entry.title}`}>
    <header>
      <h2><bdi>${entry.title}</bdi> <${State} state=${entry.state} /></h2>
      <a class="button" href=${link(["runs", run.id], { view: query.get("view") })}>Close</a>
    </header>
    ${entry.error && html`<p class="error long-text" role="alert">${entry.error}</p>`}
    <${Facts} facts=${[
      ["Started", entry.start_time && html`<${Time} at=${entry.start_time} />`],
      ["Duration", entry.start_time && html`<${Duration} of=${entry} />`],
      ["Attempts", entry.attempts > 1 && String(entry.attempts)],
      ["Exit code", Number.isInteger(entry.exit_code) && String(entry.exit_code)],
      ["Memory", entry.memory?.text],
      ["Remark", remark(entry)],
    ]} />
    <${Tabs} label="Parts of the step" tabs=${tabs} selected=${tab}
      onSelect=${(/** @type {string} */ id) => replace(addressOf({ tab: id }))}>
      ${
        tab === "log" &&
        html`<${Log} key=${`${task} ${file}`} path=${`/local/runs/${run.id}/log`} task=${task} log=${job.log}
          setLog=${job.setLog} at=${at} addressOf=${addressOf} none=${withoutLog(entry)} />`
      }
      ${tab === "curves" && html`<${Training} job=${job.job} steps=${job.steps} />`}
      ${
        tab === "replicas" &&
        html`<${Replicas} job=${job.job} target=${{ path: `/local/runs/${run.id}:fault`, task }}
          logOf=${(/** @type {string} */ name) => addressOf({ file: name, tab: "log" })} />`
      }
      ${
        tab === "values" &&
        html`<${Values} values=${{ Path: task }} />
        <${Side} run=${run} entry=${entry} side="outputs" title="Outputs" />
        <${Side} run=${run} entry=${entry} side="inputs" title="Inputs" />`
      }
    <//>
  </section>`;
}

/**
 * Parameters and artifacts of one side; those that the page can show come first.
 * @param {{run: any, entry: any, side: "inputs" | "outputs", title: string}} props
 */
function Side({ run, entry, side, title }) {
  // kfp calls the only value that a function returns "Output".
  const parameters = Object.entries(entry[side].parameters).map(([name, value]) => [
    side === "outputs" && name === "Output" ? `Return value of ${entry.title}` : name.replace(/^pipelinechannel--/, ""),
    value,
  ]);
  /** @type {[string, any[]][]} */
  const artifacts = Object.entries(entry[side].artifacts);
  if (!parameters.length && !artifacts.length) return null;
  const isShown = (/** @type {Artifact[]} */ found) => SHOWN.includes(found[0]?.type?.schemaTitle ?? "");
  artifacts.sort(([a, as], [b, bs]) => Number(isShown(bs)) - Number(isShown(as)) || a.localeCompare(b));
  const isOpen = (/** @type {number} */ at) => side === "outputs" && at < OPEN && isShown(artifacts[at][1]);
  return html`<h3>${title}</h3>
    ${parameters.length > 0 && html`<${Values} values=${parameters} />`}
    ${artifacts.map(([name, found], at) =>
      found.slice(0, 50).map(
        (artifact, index) => html`<${Artifact} key=${`${name} ${index} ${artifact.uri} ${entry.attempts}`} run=${run.id}
          place=${{ task: entry.path, side, name, index }} artifact=${artifact} isOpen=${index === 0 && isOpen(at)} />`,
      ),
    )}`;
}
