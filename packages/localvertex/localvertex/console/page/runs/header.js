// The facts of a run below its title, and why it failed.

import { link } from "../ui/address.js";
import { Duration, html, isFinal, LongText, Time } from "../ui/ui.js";

/** @param {{run: any, description?: string}} props */
export function Facts({ run, description }) {
  const since = isFinal(run.state) ? null : run.start_time;
  /** @type {[string, any][]} */
  const facts = [
    ["Pipeline", run.pipeline_name],
    ["Created", html`<${Time} at=${run.create_time} />`],
    ["Ended", run.end_time && html`<${Time} at=${run.end_time} />`],
    ["Duration", html`<${Duration} seconds=${run.seconds} since=${since} idle=${run.idle_seconds} />`],
    ["Region", run.region],
    ["Run ID", run.id !== run.name && run.id],
    ["Schedule", run.schedule && html`<a href=${link(["schedules"])}>${run.schedule.split("/").at(-1)}</a>`],
    ["Resumed", timesOf(run.resume_times?.length ?? 0)],
  ];
  return html`
    ${description && html`<${LongText} look="description" text=${description} />`}
    <dl class="facts">
      ${facts.map(([name, value]) => value && html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>`;
}

/** @param {number} count */
const timesOf = (count) => (count > 1 ? `${count} times` : count === 1 ? "once" : "");

/** The error of a run, with the end of the log that explains it. @param {{run: any, tasks: Map<string, any>}} props */
export function Failure({ run, tasks }) {
  if (!run.error) return null;
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
      ${failed.slice(0, 10).map(
        (each, index) => html`${index > 0 && ", "}<a key=${each.path}
        href=${link(["runs", run.id, each.path])}>${each.title}</a>`,
      )}
      ${failed.length > 10 && ` and ${failed.length - 10} more`}
    </p>`
    }
  </section>`;
}
