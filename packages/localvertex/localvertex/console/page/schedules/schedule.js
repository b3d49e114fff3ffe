// One schedule: when it fires, what it runs, and the runs that it has started.

import { LISTS, PAGE_SIZE } from "../runs/lists.js";
import { useEvents, useLoad } from "../server/load.js";
import { go, link } from "../ui/address.js";
import { Empty, html, Loading, Page, Problem, Section, Table, Time, Values } from "../ui/ui.js";
import { idOf, ScheduleActions } from "./actions.js";
import { CronMeaning, FastClock } from "./cron.js";
import { LastRun, nextRun, ScheduleState } from "./schedules.js";

const LIST = { title: "Schedules", href: link(["schedules"]) };

/** @param {{params: Record<string, string>}} props */
export default function Schedule({ params }) {
  const { data, error, reload } = useLoad("/local/schedules");
  const filter = new URLSearchParams({ filter: `schedule="${params.id}"`, page_size: String(PAGE_SIZE) });
  const history = useLoad(`/local/runs?${filter}`);
  const changed = () => {
    reload();
    history.reload();
  };
  useEvents({}, { runs: changed });
  const schedule = data?.schedules.find((/** @type {any} */ each) => idOf(each) === params.id);
  if (!schedule) {
    const reason = error ?? (data && "It does not exist; it may have been deleted.");
    return html`<${Page} title=${params.id} parent=${LIST}>
      ${!reason && html`<${Loading} />`}
      ${reason && html`<${Problem} title="No schedule to show" error=${reason} onRetry=${reload} />`}
    <//>`;
  }
  const heading = html`<bdi>${schedule.displayName}</bdi> <${ScheduleState} schedule=${schedule} />`;
  const actions = html`<${ScheduleActions} schedule=${schedule} onChange=${changed} onDelete=${() => go(LIST.href)} />`;
  return html`<${Page} title=${schedule.displayName} heading=${heading} parent=${LIST} actions=${actions}>
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

/** The runs of a schedule, also those that were started by hand. @param {any} props */
function History({ data, error, reload }) {
  const shown = LISTS.runs.columns.filter(({ title }) => title !== "Started by");
  return html`<${Section} title="History">
    ${error && html`<${Problem} error=${error} onRetry=${reload} />`}
    ${data && !data.runs.length && html`<${Empty} title="No runs yet" />`}
    ${data?.runs.length > 0 && html`<${Table} caption="Runs of this schedule" columns=${shown} rows=${data.runs} />`}
    ${data?.next_page_token && html`<p class="muted">and ${data.total_size - data.runs.length} earlier runs</p>`}
  <//>`;
}
