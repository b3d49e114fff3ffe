// A custom job: how its time was spent, each replica with its lane and the buttons that break it, events and curves.

import { link } from "../ui/address.js";
import { clock, count, duration, html, Loading, label, percent, Section, State } from "../ui/ui.js";
import { Curves } from "./curves.js";
import { FaultButtons } from "./fault_buttons.js";
import { Axis, Lane, Legend } from "./timeline.js";

/** The state whose symbol a condition has, and its words. @type {Record<string, [string, string]>} */
const CONDITIONS = {
  running: ["RUNNING", "Running"],
  frozen: ["PAUSED", "Frozen"],
  leaving: ["CANCELLING", "About to be lost"],
  waiting: ["PENDING", "Waiting to start"],
  done: ["SUCCEEDED", "Done"],
  stopped: ["CANCELLED", "Stopped"],
};

/** The job of a step. @param {{run: any, task: string, job: any, steps: Map<string, any>}} props */
export function Job({ run, task, job, steps }) {
  const target = { path: `/local/runs/${run.id}:fault`, task };
  const logOf = (/** @type {string} */ file) => link(["runs", run.id, task], { file });
  return html`<${Replicas} job=${job} steps=${steps} target=${target} logOf=${logOf} />`;
}

/**
 * @param {object} props
 * @param {any} props.job - The newest `job` event; null until the first.
 * @param {Map<string, any>} props.steps
 * @param {import("./fault_buttons.js").Target} props.target
 * @param {(file: string) => string} props.logOf - The address of a log.
 */
export function Replicas({ job, steps, target, logOf }) {
  if (!job) return html`<${Loading} />`;
  const { status, timeline, goodput, marks } = job;
  const total = length(job);
  const names = status.replicas.map((/** @type {any} */ each) => each.name);
  const rows = status.replicas.map((/** @type {any} */ replica) => {
    const segments = timeline[replica.name] ?? [];
    return html`<li class="replica" key=${replica.name}>
      <${Name} replica=${replica} logOf=${logOf} />
      <${Lane} name=${replica.name} segments=${segments} marks=${marks} total=${total} />
      ${status.is_running && html`<${FaultButtons} target=${target} replica=${replica} />`}
    </li>`;
  });
  return html`<div class="job">
    <${Section} title="Replicas">
      <${Facts} job=${job} />
      ${
        rows.length > 0 &&
        html`<ul class="replicas ${status.is_running ? "live" : ""}">
        ${rows}
        <li class="replica below"><span></span><${Axis} total=${total} /></li>
      </ul>`
      }
      <${Legend} timeline=${timeline} seconds=${goodput.seconds ?? {}} total=${goodput.total_seconds ?? total} />
      <${Marks} marks=${marks} />
    <//>
    <${Curves} steps=${steps} start=${status.start ?? 0} names=${names} />
  </div>`;
}

/** Seconds that the timeline covers; those of all trials of a tuning job may be more. @param {any} job */
function length({ goodput, timeline }) {
  if (goodput.total_seconds && !goodput.num_trials) return goodput.total_seconds;
  const ends = Object.values(timeline).map((segments) => segments.at(-1)?.[2] ?? 0);
  return Math.max(0.001, ...ends);
}

/** @param {{replica: any, logOf: (file: string) => string}} props */
function Name({ replica, logOf }) {
  const { name, condition, step, num_steps, num_starts, exit_codes } = replica;
  const [state, text] = CONDITIONS[condition];
  const facts = [
    num_steps ? `step ${step} of ${num_steps}` : "",
    num_starts > 1 ? `${num_starts} starts` : "",
    exit_codes.length ? `exit ${exit_codes.length > 1 ? "codes" : "code"} ${exit_codes.join(", ")}` : "",
  ];
  return html`<div class="of">
    <div>
      <a href=${logOf(`${name}.log`)} title="Show its log"><bdi>${name}</bdi></a>
      <${State} state=${state} text=${text} />
    </div>
    <div class="muted small">${facts.filter(Boolean).join(" · ")}</div>
  </div>`;
}

/** @param {{job: any}} props */
function Facts({ job }) {
  const { status, goodput } = job;
  const left = status.replicas.map((/** @type {any} */ each) => each.seconds_left).find(Boolean);
  const best = goodput.best_seconds_between_saves;
  const facts = [
    ["State", html`<${State} state=${status.state} />`],
    [status.is_running ? "Goodput so far" : "Goodput", goodput.fraction == null ? "–" : percent(goodput.fraction)],
    ["Steps that count", goodput.num_steps ?? "–"],
    ["Steps lost", goodput.num_lost_steps ?? "–"],
    ["Restarts", `${status.num_restarts}${status.num_preemptions ? `, ${status.num_preemptions} by preemption` : ""}`],
    goodput.num_trials && ["Trials", count(goodput.num_trials)],
    [goodput.num_trials ? "Time of all trials" : "Job time", duration(goodput.total_seconds)],
    status.is_running && ["Time left", duration(left)],
    best && [
      "Best time between checkpoints",
      `${duration(best)} (now ${duration(goodput.mean_seconds_between_saves)})`,
    ],
  ];
  return html`<dl class="job-facts">
    ${facts.filter(Boolean).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** Faults, exit codes and restarts, the newest first. @param {{marks: import("./timeline.js").Mark[]}} props */
function Marks({ marks }) {
  if (!marks.length) return null;
  return html`<div class="marks">
    <h3>Events</h3>
    <p class="hidden" role="status">${marks.at(-1)?.[1]}</p>
    <ol reversed aria-label="Events of the job, the newest first" tabindex="0">${marks
      .map(
        ([second, text], index) => html`<li key=${index} class=${text.startsWith("fault: ") ? "fault" : ""}>
          <span class="muted number">${clock(second)}</span><span>${text.replace(/^JOB_STATE_\w+$/, label)}</span>
        </li>`,
      )
      .reverse()}</ol>
  </div>`;
}
