// The schedules of all locations, and what can be done with one: run it now, pause it, resume it, delete it.

import { post, remove, useAction, useEvents, useLoad } from "../server/server.js";
import {
  Asking,
  Confirm,
  Dialog,
  Empty,
  formatted,
  go,
  html,
  Loaded,
  link,
  NONE,
  Page,
  Problem,
  State,
  Table,
  useState,
} from "../ui/ui.js";
import { FastClock, idOf, inZone } from "./cron.js";

const CREATE = html`<a class="button primary" href="#/schedules/new">Create schedule</a>`;

export default function Schedules() {
  const found = useLoad("/local/schedules");
  // A run of a schedule that begins or ends changes the schedule, too.
  useEvents({}, { runs: found.reload });
  return html`<${Page} title="Schedules" actions=${CREATE}>
    <${Loaded} title="The list cannot be read" ...${found}>${({ schedules, time_factor }) =>
      schedules.length
        ? html`<${FastClock} factor=${time_factor} />
          <${Table} caption="Schedules" columns=${columns(found.reload)} rows=${schedules} keyOf=${(row) => row.name} />
          <p class="small muted wide-only">Runs started does not count runs of Run now.</p>`
        : html`<${Empty} title="No schedules yet">
            ${CREATE}
            <p class="small">
              Schedules fire while <code>python -m localvertex console</code> or <code>serve</code> runs.</p>
          <//>`}<//>
  <//>`;
}

/** @param {() => void} onChange @returns {Column[]} */
const columns = (onChange) => [
  { title: "Schedule", isName: true, cell: (row) => html`<${Name} schedule=${row} />` },
  { title: "Status", cell: (row) => html`<${State} state=${stateOf(row)} />` },
  { title: "Next run", isWideOnly: true, cell: nextRun },
  { title: "Last run", isWideOnly: true, cell: (row) => html`<${LastRun} schedule=${row} />` },
  { title: "Runs started", isNumber: true, isWideOnly: true, cell: (row) => formatted(row.startedRunCount) },
  {
    title: "Actions",
    isWideOnly: true,
    cell: (row) => html`<div class="actions">
      <${ScheduleActions} schedule=${row} onChange=${onChange} onDelete=${onChange} />
    </div>`,
  },
];

/** @param {{schedule: any}} props */
function Name({ schedule }) {
  return html`
    <a class="title" href=${link(["schedules", idOf(schedule)])}><bdi>${schedule.displayName}</bdi></a>
    <div class="muted small">${schedule.cron}${schedule.zone && ` · ${schedule.zone}`}</div>
    <div class="narrow-only muted small">Next: ${nextRun(schedule)}</div>`;
}

/** A record that cannot be read has no state. @param {{state: string}} schedule */
export const stateOf = ({ state }) => (state === "STATE_UNSPECIFIED" ? "DAMAGED" : state);

/** When a schedule fires next, in its zone. @param {Schedule} schedule */
export function nextRun({ state, nextRunTime, zone }) {
  if (state !== "ACTIVE" || !nextRunTime) return NONE;
  return html`<time datetime=${nextRunTime}>${inZone(nextRunTime, zone)}</time>`;
}

/** The result of the last scheduled time, with a link to its run. @param {{schedule: any}} props */
export function LastRun({ schedule }) {
  const { runResponse = "", scheduledRunTime } = schedule.lastScheduledRunResponse ?? {};
  if (!runResponse) return NONE;
  const [, run] = runResponse.match(/^OK: .*\/pipelineJobs\/(.+)$/) ?? [];
  if (run) return html`<a href=${link(["runs", run])}>${inZone(scheduledRunTime, schedule.zone)}</a>`;
  return html`<span class="error small clamp" title=${runResponse}>${runResponse}</span>`;
}

/** The buttons of a schedule. @param {ScheduleActionsProps} props */
export function ScheduleActions({ schedule, onChange, onDelete }) {
  const { state, displayName } = schedule;
  const [act, { isBusy, error }] = useAction(async (verb) => {
    if (verb === "Pause") {
      await post(`/v1/${schedule.name}:pause`);
      return onChange();
    }
    const { name } = await post(`/local/schedules/${idOf(schedule)}:run`);
    go(link(["runs", idOf({ name })]));
  });
  const button = (/** @type {string} */ verb) =>
    html`<button aria-label=${`${verb}: ${displayName}`} disabled=${isBusy}
      onClick=${() => act(verb)}>${verb}</button>`;
  const ask = (/** @type {string} */ verb, /** @type {Component} */ dialog, /** @type {() => void} */ onDone) =>
    html`<${Asking} key=${verb} verb=${verb} aria-label=${`${verb}: ${displayName}`} dialog=${dialog}
      of=${{ schedule, onDone }} />`;
  return html`
    ${["ACTIVE", "PAUSED", "COMPLETED"].includes(state) && button("Run now")}
    ${state === "ACTIVE" && button("Pause")}
    ${state === "PAUSED" && ask("Resume", Resume, onChange)}
    ${ask("Delete", Delete, onDelete)}
    ${error && html`<${Refused} error=${error} />`}`;
}

/** Why a button did nothing; the same error is shown once. @param {{error: Error}} props */
function Refused({ error }) {
  const [closed, close] = useState(/** @type {Error | null} */ (null));
  if (closed === error) return null;
  return html`<${Dialog} title="Not done" onClose=${() => close(error)}><${Problem} error=${error} /><//>`;
}

/** @param {ResumeProps} props */
function Resume({ schedule, onDone, onClose }) {
  const [catchUp, setCatchUp] = useState(false);
  const choices = /** @type {Array<[boolean, string, string]>} */ ([
    [false, "Continue with the next run", "Runs that were due during the pause are skipped."],
    [true, "Catch up", "Runs that were due during the pause are started first, one after the other."],
  ]);
  return html`<${Confirm} title=${`Resume ${schedule.displayName}`} action="Resume" isDangerous=${false}
      onConfirm=${() => post(`/v1/${schedule.name}:resume`, { catchUp }).then(onDone)} onClose=${onClose}>
    ${choices.map(
      ([value, title, text]) => html`<label key=${title} class="option">
        <input type="radio" name="catch-up" checked=${catchUp === value} onChange=${() => setCatchUp(value)} />
        <span>${title}<span class="muted small">${text}</span></span>
      </label>`,
    )}
  <//>`;
}

/** @param {{schedule: Schedule, onDone: () => void, onClose: () => void}} props */
function Delete({ schedule, onDone, onClose }) {
  return html`<${Confirm} title=${`Delete ${schedule.displayName}?`} action="Delete" onClose=${onClose}
      onConfirm=${() => remove(`/v1/${schedule.name}`).then(onDone)}>
    <p>No more runs are started. The runs that it has started stay, and those that are running continue.</p>
  <//>`;
}
