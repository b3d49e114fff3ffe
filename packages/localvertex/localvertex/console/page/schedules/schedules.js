// The schedules of all locations.

import { useEvents, useLoad } from "../server/load.js";
import { link } from "../ui/address.js";
import { Empty, html, Loading, Page, Problem, State, Table } from "../ui/ui.js";
import { idOf, ScheduleActions } from "./actions.js";
import { FastClock, inZone } from "./cron.js";

const CREATE = html`<a class="button primary" href=${link(["schedules", "new"])}>Create schedule</a>`;

export default function Schedules() {
  const { data, error, reload } = useLoad("/local/schedules");
  // A run of a schedule that begins or ends changes the schedule, too.
  useEvents({}, { runs: reload });
  return html`<${Page} title="Schedules" actions=${CREATE}>
    ${error && html`<${Problem} title="The list cannot be read" error=${error} onRetry=${reload} />`}
    ${!data && !error && html`<${Loading} />`}
    ${data?.schedules.length > 0 && html`<${FastClock} factor=${data.time_factor} />`}
    ${data && html`<${List} schedules=${data.schedules} onChange=${reload} />`}
  <//>`;
}

/** @param {{schedules: any[], onChange: () => void}} props */
function List({ schedules, onChange }) {
  if (!schedules.length) {
    return html`<${Empty} title="No schedules yet">
      ${CREATE}
      <p class="small">Schedules fire while <code>python -m localvertex console</code> or <code>serve</code> runs.</p>
    <//>`;
  }
  const columns = [
    { title: "Schedule", isName: true, cell: (/** @type {any} */ each) => html`<${Name} schedule=${each} />` },
    { title: "Status", cell: (/** @type {any} */ each) => html`<${ScheduleState} schedule=${each} />` },
    { title: "Next run", isWideOnly: true, cell: nextRun },
    { title: "Last run", isWideOnly: true, cell: (/** @type {any} */ each) => html`<${LastRun} schedule=${each} />` },
    { title: "Runs started", isNumber: true, isWideOnly: true, cell: started },
    {
      title: "Actions",
      isWideOnly: true,
      cell: (/** @type {any} */ each) => html`<div class="actions">
        <${ScheduleActions} schedule=${each} onChange=${onChange} onDelete=${onChange} />
      </div>`,
    },
  ];
  const keyOf = (/** @type {any} */ each) => each.name;
  return html`<${Table} caption="Schedules" columns=${columns} rows=${schedules} keyOf=${keyOf} />
    <p class="small muted wide-only">Runs started does not count runs of Run now.</p>`;
}

/** @param {any} schedule */
const started = (schedule) => schedule.startedRunCount ?? "–";

/** @param {{schedule: any}} props */
function Name({ schedule }) {
  return html`
    <a class="title" href=${link(["schedules", idOf(schedule)])}><bdi>${schedule.displayName}</bdi></a>
    <div class="muted small">${schedule.sentence || schedule.cron}${schedule.zone && ` · ${schedule.zone}`}</div>
    <div class="narrow-only muted small">Next: ${nextRun(schedule)}</div>`;
}

/** A record that cannot be read has no state. @param {{schedule: any}} props */
export function ScheduleState({ schedule }) {
  return html`<${State} state=${schedule.state === "STATE_UNSPECIFIED" ? "DAMAGED" : schedule.state} />`;
}

/** When a schedule fires next, in its zone. @param {any} schedule */
export function nextRun({ state, nextRunTime, zone }) {
  if (state !== "ACTIVE" || !nextRunTime) return html`<span class="muted">–</span>`;
  return html`<time datetime=${nextRunTime}>${inZone(nextRunTime, zone)}</time>`;
}

/** The result of the last scheduled time, with a link to its run. @param {{schedule: any}} props */
export function LastRun({ schedule }) {
  const { runResponse = "", scheduledRunTime } = schedule.lastScheduledRunResponse ?? {};
  if (!runResponse) return html`<span class="muted">–</span>`;
  const [, run] = runResponse.match(/^OK: .*\/pipelineJobs\/(.+)$/) ?? [];
  if (run) return html`<a href=${link(["runs", run])}>${inZone(scheduledRunTime, schedule.zone)}</a>`;
  return html`<span class="error small clamp">${runResponse}</span>`;
}
