// A custom job: how its time was spent, each replica with its lane and the buttons that break it, and events.

import { post } from "../server/server.js";
import {
  Asking,
  Confirm,
  clock,
  count,
  duration,
  Facts,
  formatted,
  html,
  Input,
  Loaded,
  label,
  Notice,
  percent,
  Section,
  State,
  useMemo,
  useState,
} from "../ui/ui.js";
import { Curves } from "./curves.js";

/** The state whose symbol a condition has, and its words. @type {Record<string, [string, string]>} */
const CONDITIONS = {
  running: ["RUNNING", "Running"],
  frozen: ["PAUSED", "Frozen"],
  leaving: ["CANCELLING", "About to be lost"],
  waiting: ["PENDING", "Waiting to start"],
  done: ["SUCCEEDED", "Done"],
  stopped: ["CANCELLED", "Stopped"],
};

/** The kinds of segments in the order of the legend, and what they mean. */
const KINDS = {
  productive: "training steps whose result is kept",
  lost: "training steps that were repeated, and training that a failure interrupted",
  saving: "writing checkpoints",
  restoring: "reading a checkpoint",
  starting: "from the start of a process to its first step",
  evaluating: "on the validation split",
  waiting: "no process, or between two events",
  running: "a program that logs no training steps",
};

/** The width of a character in percent of a lane on a wide screen. */
const CHARACTER = 1.1;

const GRACE_SECONDS = 30;

/** The title of each fault, and its effects. @type {Record<string, string[]>} */
const FAULTS = {
  SIGKILL: [
    "Kill",
    "The process gets SIGKILL and ends at once, without saving.",
    "The job then restarts by Vertex AI's rules: this replica, or all replicas if the job requires it.",
  ],
  SIGSTOP: [
    "Freeze",
    "The process gets SIGSTOP: it neither continues nor ends. Vertex AI does not detect this.",
    "With exact_resume its peers exit within peer_timeout_seconds, by default 5 minutes; then the job restarts.",
    "Without peers, the job waits until you kill this replica or until its timeout.",
  ],
  preempt: [
    "Preempt",
    "The machine announces its preemption. The process gets SIGTERM, and SIGKILL after the grace time.",
    "The whole job then restarts, at most 6 times.",
  ],
};

/**
 * @param {object} props
 * @param {any} props.job - The newest `job` event; null until the first.
 * @param {Target} props.target
 * @param {(file: string) => string} props.logOf - The address of a log.
 */
export function Replicas({ job, target, logOf }) {
  if (!job) return html`<${Loaded} />`;
  const { status, timeline, goodput, events } = job;
  const total = length(job);
  const { is_running } = status;
  return html`<div class="job">
    <div aria-live="polite">
      ${status.stalled && html`<${Notice} kind="warn" title="No progress">${status.stalled}<//>`}
    </div>
    <${Section} title="Replicas">
      <${Facts} facts=${factsOf(job)} />
      <ul class="replicas ${is_running ? "live" : ""}">
        ${status.replicas.map(
          (/** @type {ShownReplica} */ replica) => html`<li class="replica" key=${replica.name}>
            <${Name} replica=${replica} logOf=${logOf} />
            <${Lane} name=${replica.name} segments=${timeline[replica.name] ?? []} events=${events} total=${total} />
            ${is_running && html`<${Faults} target=${target} replica=${replica} />`}
          </li>`,
        )}
        ${
          status.replicas.length > 0 &&
          html`<li class="replica below"><span></span><div class="axis" aria-hidden="true">
            ${[0, 0.25, 0.5, 0.75, 1].map((part) => html`<span>${clock(part * total)}</span>`)}</div></li>`
        }
      </ul>
      <${Legend} timeline=${timeline} seconds=${goodput.seconds ?? {}} total=${goodput.total_seconds ?? total} />
      ${events.length > 0 && html`<${Events} events=${events} />`}
    <//>
  </div>`;
}

/** The curves of a job. @param {TrainingProps} props */
export function Training({ job, steps, only }) {
  if (!job) return only ? null : html`<${Loaded} />`;
  const { start, replicas } = job.status;
  return html`<div class="job"><${Curves} steps=${steps} start=${start ?? 0} only=${only}
    names=${replicas.map((/** @type {ShownReplica} */ each) => each.name)} /></div>`;
}

/** Seconds that the timeline covers; the sum over a tuning job's trials may be more. @param {ShownJob} job */
function length({ goodput, timeline }) {
  if (goodput.total_seconds && !goodput.num_trials) return goodput.total_seconds;
  const ends = Object.values(timeline).map((segments) => segments.at(-1)?.[2] ?? 0);
  return Math.max(0.001, ...ends);
}

/** @param {NameProps} props */
function Name({ replica, logOf }) {
  const { name, condition, step, num_steps, num_starts, exit_codes, memory } = replica;
  const [state, text] = CONDITIONS[condition];
  const facts = [
    num_steps ? `step ${step} of ${num_steps}` : "",
    num_starts > 1 ? `${num_starts} starts` : "",
    exit_codes.length ? `exit ${exit_codes.length > 1 ? "codes" : "code"} ${exit_codes.join(", ")}` : "",
    memory?.text,
  ];
  return html`<div class="of">
    <div>
      <a href=${logOf(`${name}.log`)} title="Show its log"><bdi>${name}</bdi></a>
      <${State} state=${state} text=${text} />
    </div>
    <div class="muted small">${facts.filter(Boolean).join(" · ")}</div>
  </div>`;
}

/** @param {ShownJob} job */
function factsOf({ status, goodput }) {
  const left = status.replicas.map((each) => each.seconds_left).find(Boolean);
  return [
    ["State", html`<${State} state=${status.state} />`],
    [status.is_running ? "Goodput so far" : "Goodput", formatted(goodput.fraction, percent)],
    ["Steps that count", formatted(goodput.num_steps)],
    ["Steps lost", formatted(goodput.num_lost_steps)],
    ["Restarts", `${status.num_restarts}${status.num_preemptions ? `, ${status.num_preemptions} by preemption` : ""}`],
    ["Trials", goodput.num_trials && count(goodput.num_trials)],
    [goodput.num_trials ? "Time of all trials" : "Job time", duration(goodput.total_seconds)],
    ["Time left", status.is_running && duration(left)],
  ];
}

/** @param {string} kind */
const fill = (kind) => ({ fill: `var(--${kind})` });

/** What a replica did and when. @param {LaneProps} props */
function Lane({ name, segments, events, total }) {
  const along = (/** @type {number} */ seconds) => `${((seconds / total) * 100).toFixed(3)}%`;
  const faults = events.filter(({ kind, replica }) => kind === "fault" && [name, "all"].includes(replica));
  return useMemo(
    () => html`<svg class="lane" role="img" aria-label=${spoken(name, segments, faults)}>
      ${segments.map(
        ([
          kind,
          start,
          end,
        ]) => html`<rect class=${kind} style=${fill(kind)} x=${along(start)} width=${along(end - start)} height="100%">
          <title>${`${kind}, ${duration(end - start)} from ${duration(start)}`}</title>
        </rect>`,
      )}
      ${segments
        .filter(([kind, start, end]) => ((end - start) / total) * 100 > CHARACTER * (kind.length + 1))
        .map(([kind, start, end]) => html`<text class=${kind} x=${along((start + end) / 2)} y="16">${kind}</text>`)}
      ${faults.map(
        ({ time, text }) => html`<g class="fault"><title>${`${duration(time)}: ${text}`}</title>
          <line x1=${along(time)} x2=${along(time)} y1="-4" y2="28" />
          <circle cx=${along(time)} cy="-4" r="4" />
        </g>`,
      )}
    </svg>`,
    [segments, faults.length, total],
  );
}

/** @param {string} name @param {Segment[]} segments @param {JobEvent[]} faults */
function spoken(name, segments, faults) {
  const parts = Object.keys(KINDS).flatMap((kind) => {
    const seconds = segments.reduce((sum, [each, start, end]) => sum + (each === kind ? end - start : 0), 0);
    return seconds ? [`${kind} ${duration(seconds)}`] : [];
  });
  return [`Timeline of ${name}: ${parts.join(", ") || "nothing yet"}`, ...faults.map(({ text }) => text)].join("; ");
}

/**
 * The kinds that occur, with the seconds of the primary replica, or of all trials of a tuning job.
 * @param {LegendProps} props
 */
function Legend({ timeline, seconds, total }) {
  const used = new Set(Object.values(timeline).flatMap((segments) => segments.map(([kind]) => kind)));
  return html`<ul class="legend" aria-label="Time by kind">
    ${Object.entries(KINDS)
      .filter(([kind]) => used.has(kind) || seconds[kind])
      .map(
        ([kind, meaning]) => html`<li key=${kind} title=${meaning}>
          <svg class="swatch" aria-hidden="true"><rect style=${fill(kind)} width="100%" height="100%" /></svg>
          ${kind}${" "}
          ${
            seconds[kind] > 0 &&
            html`<span class="muted">${duration(seconds[kind])}, ${percent(seconds[kind] / total)}</span>`
          }
          <span class="hidden">${meaning}</span>
        </li>`,
      )}
  </ul>`;
}

/** @param {JobEvent} event */
const sentence = ({ kind, phase, text }) => [kind === "state" && label(phase), text].filter(Boolean).join(": ");

/** Faults, exit codes and restarts, the newest first. @param {{events: JobEvent[]}} props */
function Events({ events }) {
  return html`<div class="marks">
    <h3>Events</h3>
    <p class="hidden" role="status">${sentence(events[events.length - 1])}</p>
    <ol reversed aria-label="Events of the job, the newest first" tabindex="0">${events
      .map(
        (event, index) => html`<li key=${index} class=${event.kind === "fault" ? "fault" : ""}>
          <span class="muted number">${clock(event.time)}</span><span>${sentence(event)}</span>
        </li>`,
      )
      .reverse()}</ol>
  </div>`;
}

/** @param {FaultsProps} props */
function Faults({ target, replica: { name, condition } }) {
  const isAlive = ["running", "frozen", "leaving"].includes(condition);
  return html`<div class="faults" role="group" aria-label=${`Break ${name}`}>
    ${Object.entries(FAULTS).map(
      ([
        action,
        [title],
      ]) => html`<${Asking} key=${action} verb=${title} aria-label=${`${title} ${name}`} dialog=${Fault}
        of=${{ target, name, action }} disabled=${!isAlive || (action !== "SIGKILL" && condition !== "running")} />`,
    )}
  </div>`;
}

/** @param {FaultProps} props */
function Fault({ target: { path, task }, name, action, onClose }) {
  const [grace, setGrace] = useState(String(GRACE_SECONDS));
  const [title, ...texts] = FAULTS[action];
  const more = { ...(task && { task }), ...(action === "preempt" && { grace_seconds: Number(grace) }) };
  return html`<${Confirm} title=${`${title} ${name}?`} action=${`${title} it`} onClose=${onClose}
      onConfirm=${() => post(path, { replica: name, action, ...more })}>
    ${texts.map((text) => html`<p key=${text}>${text}</p>`)}
    ${
      action === "preempt" &&
      html`<label>Grace time in seconds${" "}
        <${Input} type="number" min="0" max="3600" value=${grace} onText=${setGrace} /></label>`
    }
    <p class="muted">Training should resume from its last checkpoint and neither lose nor repeat a step that counts.</p>
  <//>`;
}
