// One schedule: when it fires, what it runs, and the runs that it has started.

import { columnsOf, PAGE_SIZE } from "../runs/runs.js";
import { useEvents, useLoad } from "../server/server.js";
import { Empty, go, html, Loaded, Page, Section, Table, Time, Values } from "../ui/ui.js";
import { CronMeaning, FastClock, idOf } from "./cron.js";
import { LastRun, nextRun, ScheduleActions, stateOf } from "./schedules.js";

const PARENT = ["Schedules", "#/schedules"];

/** @param {ViewProps} props */
export default function Schedule({ params: { id } }) {
  const { data, error, reload } = useLoad("/local/schedules");
  const filter = new URLSearchParams({ filter: `schedule="${id}"`, page_size: String(PAGE_SIZE) });
  const history = useLoad(`/local/runs?${filter}`);
  const changed = () => {
    reload();
    history.reload();
  };
  useEvents({}, { runs: changed });
  const schedule = data?.schedules.find((/** @type {Schedule} */ each) => idOf(each) === id);
  if (!schedule) {
    const reason = error ?? (data && "It does not exist; it may have been deleted.");
    return html`<${Page} title=${id} parent=${PARENT}>
      <${Loaded} title="No schedule to show" error=${reason} reload=${reload} />
    <//>`;
  }
  const actions = html`<${ScheduleActions} schedule=${schedule} onChange=${changed} onDelete=${() => go(PARENT[1])} />`;
  return html`<${Page} title=${schedule.displayName} state=${stateOf(schedule)} parent=${PARENT} actions=${actions}>
    <${FastClock} factor=${data.time_factor} />
    <div class="schedule">
      ${schedule.zone && html`<${Times} schedule=${schedule} />`}
      <${Facts} schedule=${schedule} />
    </div>
    <${History} ...${history} />
  <//>`;
}

/** @param {{schedule: any}} props */
function Times({ schedule }) {
  const title = schedule.state === "PAUSED" ? "Next times, once it is resumed" : "Next times";
  return html`<section class="card" aria-label="Times">
    <p><code>${schedule.cron}</code></p>
    <${CronMeaning} meaning=${schedule} title=${title} />
  </section>`;
}

/** @param {{schedule: any}} props */
function Facts({ schedule }) {
  const { data } = useLoad(`/v1/${schedule.name}`);
  const job = data?.createPipelineJobRequest?.pipelineJob;
  const parameters = job?.runtimeConfig?.parameterValues ?? {};
  const limit = schedule.maxConcurrentRunCount;
  return html`<${Values} values=${{
    Pipeline: job ? (job.pipelineSpec?.pipelineInfo?.name ?? job.displayName) : "",
    "Next run": nextRun(schedule),
    "Last run": html`<${LastRun} schedule=${schedule} />`,
    "Runs started": html`<span>
      ${schedule.startedRunCount ?? 0}${schedule.maxRunCount && ` of ${schedule.maxRunCount}`}
      <span class="muted small"> (without Run now)</span>
    </span>`,
    "At the same time": limit ? `at most ${limit}; others ${schedule.allowQueueing ? "wait" : "are skipped"}` : "",
    Created: html`<${Time} at=${schedule.createTime} />`,
    Parameters: Object.keys(parameters).length ? parameters : job && "the defaults of the pipeline",
  }} />`;
}

/** The runs of a schedule, also those that were started by hand. @param {any} found - What `useLoad` returned. */
function History(found) {
  return html`<${Section} title="History">
    <${Loaded} ...${found}>${({ runs, columns, next_page_token, total_size }) => html`
      ${
        runs.length
          ? html`<${Table} caption="Runs of this schedule" rows=${runs}
              columns=${columnsOf("schedule", { columns }, [])} />`
          : html`<${Empty} title="No runs yet" />`
      }
      ${next_page_token && html`<p class="muted">and ${total_size - runs.length} earlier runs</p>`}`}<//>
  <//>`;
}
