// Create a schedule: choose a compiled pipeline, its times, and fill in its form as for a single run.

import { prepared, useChecks, useDraft } from "../creating/draft_state.js";
import { Field } from "../creating/fields.js";
import { Form, MachineCheck, Refusals } from "../creating/form.js";
import { usePipeline } from "../creating/pipeline.js";
import { post, useAction, usePost } from "../server/server.js";
import { go, html, link, Page, Problem, Section, Select, useMemo, useState } from "../ui/ui.js";
import { CronMeaning, FastClock, idOf } from "./cron.js";

const TYPING_MS = 200;

const EXAMPLES = [
  ["Every hour", "0 * * * *"],
  ["Every day at 3:00", "0 3 * * *"],
  ["Mondays at 3:00", "0 3 * * 1"],
];

const AT_LIMIT = [
  ["false", "skip the run"],
  ["true", "wait until another run ends"],
];

/** @param {ViewProps} props */
export default function NewSchedule({ query }) {
  const { overview, server, key, choice } = usePipeline(query, "#/schedules/new");
  const title = overview ? `Schedule ${overview.pipeline}` : "Create schedule";
  return html`<${Page} title=${title} parent=${["Schedules", "#/schedules"]}>
    ${choice}
    ${overview && html`<${Draft} key=${key} overview=${overview} server=${server} />`}
  <//>`;
}

/** @param {DraftProps} props */
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
  const asked = useMemo(() => ({ cron: whole }), [whole]);
  const found = usePost("/local/cron", asked, TYPING_MS);
  const cronError = found.error?.message ?? found.answer?.error ?? "";
  const [create, { isBusy, error: refused }] = useAction(async () => {
    const { location, request } = await prepared(overview, draft);
    const schedule = await post(`/v1/${location}/schedules`, {
      displayName: times.name.trim(),
      cron: whole,
      maxConcurrentRunCount: times.limit,
      allowQueueing: times.isQueued,
      createPipelineJobRequest: { parent: location, pipelineJob: request },
    });
    go(link(["schedules", idOf(schedule)]));
  });
  const isWrong = errors.size > 0 || cronError || !found.isCurrent || !times.name.trim() || !isCount(times.limit);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setIsTried(true);
    if (!isWrong) create();
  };
  const problem = error ?? refused;
  return html`<form class="creating" onSubmit=${submit} novalidate>
    <div class="start">
      ${problem && html`<${Problem} title="The schedule was not created" error=${problem} />`}
      <div class="actions">
        <button class="primary" type="submit" disabled=${isBusy}>Create schedule</button>
        <span class="error" aria-live="polite">${isTried && isWrong && "Correct the form first."}</span>
      </div>
    </div>
    <div class="main">
      <${Refusals} refusals=${answer.refusals} notes=${answer.notes} />
      <${Times} times=${times} setTimes=${setTimes} error=${cronError} meaning=${cronError ? null : found.answer} />
      <${Form} overview=${overview} draft=${draft} errors=${errors} isTried=${isTried} onChange=${change} />
    </div>
    <aside><${MachineCheck} check=${answer.machine_check} draft=${draft} server=${server} onChange=${change} /></aside>
  </form>`;
}

/** @param {string} text */
const isCount = (text) => /^[1-9]\d{0,5}$/.test(text);

/** @param {TimesProps} props */
function Times({ times, setTimes, error, meaning }) {
  const { name, expression, zone, limit, isQueued } = times;
  const set = (/** @type {keyof When} */ key) => (/** @type {string | boolean} */ value) =>
    setTimes({ ...times, [key]: value });
  const after = html`<p class="examples">
      ${EXAMPLES.map(
        ([name, each]) =>
          html`<button key=${each} type="button" class="quiet"
            onClick=${() => set("expression")(each)}>${name}</button>`,
      )}
    </p>
    <div aria-live="polite">${meaning && html`<${CronMeaning} meaning=${meaning} />`}</div>`;
  return html`<${Section} title="Schedule">
    <${FastClock} factor=${meaning?.time_factor} />
    <div class="fields">
      <${Field} id="schedule-name" name="Name" error=${name.trim() ? "" : "Give the schedule a name."} maxlength="128"
        value=${name} onText=${set("name")} />
      <${Field} id="cron" name="Cron" error=${error} after=${after} class="mono" value=${expression}
        hint="Five fields: minute, hour, day of the month, month, day of the week." spellcheck=${false}
        autocomplete="off" onText=${set("expression")} />
      <${Field} id="zone" name="Time zone" as=${Select} value=${zone} onText=${set("zone")}
        choices=${[...new Set([zone, "UTC", ...Intl.supportedValuesOf("timeZone")])]} />
      <${Field} id="limit" name="Runs at the same time" error=${isCount(limit) ? "" : "Expected 1 or more."}
        inputmode="numeric" value=${limit} onText=${set("limit")} />
      <${Field} id="queued" name="When the limit is reached" as=${Select} value=${String(isQueued)} choices=${AT_LIMIT}
        onText=${(text) => set("isQueued")(text === "true")} />
    </div>
  <//>`;
}
