// Create a schedule: choose a compiled pipeline, its times, and fill in its form as for a single run.

import { MachineCheck, Refusals } from "../creating/checks.js";
import { prepared, useChecks, useDraft } from "../creating/draft_state.js";
import { Field } from "../creating/field.js";
import { Form } from "../creating/form.js";
import { usePipeline } from "../creating/pipeline.js";
import { Settings } from "../creating/settings.js";
import { post } from "../server/api.js";
import { useAction } from "../server/load.js";
import { go, link } from "../ui/address.js";
import { html, Page, Problem, Section, Select, useState } from "../ui/ui.js";
import { idOf } from "./actions.js";
import { CronFields, FastClock, useCron } from "./cron.js";

const AT_LIMIT = [
  ["false", "skip the run"],
  ["true", "wait until another run ends"],
];

/** @param {{query: URLSearchParams}} props */
export default function NewSchedule({ query }) {
  const { overview, server, key, choice } = usePipeline(query, "#/schedules/new");
  const title = overview ? `Schedule ${overview.pipeline}` : "Create schedule";
  return html`<${Page} title=${title} parent=${{ title: "Schedules", href: link(["schedules"]) }}>
    ${choice}
    ${overview && html`<${Draft} key=${key} overview=${overview} server=${server} />`}
  <//>`;
}

/** @param {{overview: Overview, server: ServerInfo | null}} props */
function Draft({ overview, server }) {
  const [draft, change] = useDraft(overview);
  const [times, setTimes] = useState({
    name: overview.pipeline,
    expression: "0 3 * * *",
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    limit: "1",
    isQueued: false,
  });
  const [isTried, setIsTried] = useState(false);
  const { answer, errors, error } = useChecks(overview, draft);
  const text = times.expression.trim();
  const whole = /^(CRON_)?TZ=/.test(text) ? text : `TZ=${times.zone} ${text}`;
  const cron = useCron(whole);
  const [create, { isBusy, error: refused }] = useAction(async () => {
    const schedule = await created(overview, draft, times, whole);
    go(link(["schedules", idOf(schedule)]));
  });
  const isWrong = errors.size > 0 || cron.error || !cron.isCurrent || !times.name.trim() || !isCount(times.limit);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setIsTried(true);
    if (!isWrong) create();
  };
  const problem = error ?? refused;
  return html`<form class="creating" onSubmit=${submit} novalidate>
    <div class="main">
      <${Refusals} refusals=${answer.refusals} notes=${answer.notes} />
      <${Times} times=${times} setTimes=${setTimes} cron=${cron} />
      <${Form} overview=${overview} draft=${draft} errors=${errors} isTried=${isTried} onChange=${change} />
      <${Settings} draft=${draft} errors=${errors} onChange=${change} />
    </div>
    <aside><${MachineCheck} check=${answer.machine_check} draft=${draft} server=${server} onChange=${change} /></aside>
    <div class="start">
      ${problem && html`<${Problem} title="The schedule was not created" error=${problem} />`}
      <div class="actions">
        <button class="primary" type="submit" disabled=${isBusy}>Create schedule</button>
        <span class="error" aria-live="polite">${isTried && isWrong && "Correct the form first."}</span>
      </div>
    </div>
  </form>`;
}

/** @typedef {{name: string, expression: string, zone: string, limit: string, isQueued: boolean}} When */

/** @param {string} text */
const isCount = (text) => /^[1-9]\d{0,5}$/.test(text);

/** @param {{times: When, setTimes: (times: When) => void, cron: ReturnType<typeof useCron>}} props */
function Times({ times, setTimes, cron }) {
  const set = (/** @type {Partial<When>} */ change) => setTimes({ ...times, ...change });
  return html`<${Section} title="Schedule">
    <${FastClock} factor=${cron.meaning?.time_factor} />
    <div class="fields">
      <${Field} id="schedule-name" name="Name" error=${times.name.trim() ? "" : "Give the schedule a name."}>
        ${(/** @type {object} */ aria) => html`<input ...${aria} maxlength="128" value=${times.name}
          onInput=${(/** @type {any} */ event) => set({ name: event.target.value })} />`}
      <//>
      <${CronFields} expression=${times.expression} zone=${times.zone} cron=${cron}
        onExpression=${(/** @type {string} */ expression) => set({ expression })}
        onZone=${(/** @type {string} */ zone) => set({ zone })} />
      <${Field} id="limit" name="Runs at the same time" error=${isCount(times.limit) ? "" : "Expected 1 or more."}>
        ${(/** @type {object} */ aria) => html`<input ...${aria} inputmode="numeric" value=${times.limit}
          onInput=${(/** @type {any} */ event) => set({ limit: event.target.value })} />`}
      <//>
      <${Field} id="queued" name="When the limit is reached">
        ${(/** @type {object} */ aria) => html`<${Select} ...${aria} value=${String(times.isQueued)} choices=${AT_LIMIT}
          onChoose=${(/** @type {string} */ text) => set({ isQueued: text === "true" })} />`}
      <//>
    </div>
  <//>`;
}

/**
 * Create the schedule with Vertex AI's method.
 * @param {Overview} overview @param {DraftState} draft @param {When} times
 * @param {string} cron - With its time zone.
 */
async function created(overview, draft, times, cron) {
  const { location, request } = await prepared(overview, draft);
  return await post(`/v1/${location}/schedules`, {
    displayName: times.name.trim(),
    cron,
    maxConcurrentRunCount: times.limit,
    allowQueueing: times.isQueued,
    createPipelineJobRequest: { parent: location, pipelineJob: request },
  });
}
