// One pipeline on its way to a run: what it is, its form, its checks, and the button that starts it.

import { useAction } from "../server/load.js";
import { html, useEffect, useState } from "../ui/html.js";
import { LongText } from "../ui/page.js";
import { Notice, Problem } from "../ui/problem.js";
import { MachineCheck, Refusals } from "./checks.js";
import { useFileDrop } from "./choose.js";
import { Form } from "./form.js";
import { Preview } from "./preview.js";
import { Same } from "./same.js";
import { Settings } from "./settings.js";
import { start, useChecks, useDraft } from "./state.js";

/** @param {{overview: Overview, server: ServerInfo | null}} props */
export function Draft({ overview, server }) {
  const [draft, setDraft] = useDraft(overview);
  const [isTried, setIsTried] = useState(false);
  const { answer, errors, error } = useChecks(overview, draft);
  const [run, { isBusy, error: notStarted }] = useAction(async () => {
    location.hash = `#/runs/${await start(overview, draft)}`;
  });
  const [show, hide] = useFirstError(errors);
  const change = (/** @type {Change} */ each) => {
    hide();
    setDraft(each);
  };
  const submit = () => {
    setIsTried(true);
    show();
    if (!errors.size) run();
  };
  useFileDrop(() => {});
  const failed = notStarted?.details.length ? null : notStarted;
  // Not a form element: each button of a part in it, such as Copy, would start the run.
  return html`<div class="creating">
    <div class="top-part">
      <${About} overview=${overview} />
      <${Refusals} refusals=${answer.refusals} notes=${answer.notes} />
    </div>
    <aside><${MachineCheck} check=${answer.machine_check} draft=${draft} server=${server} onChange=${change} /></aside>
    <div class="main">
      <${Preview} content=${overview.content} />
      <${Form} overview=${overview} draft=${draft} errors=${errors} isTried=${isTried} onChange=${change} />
      <${Settings} draft=${draft} errors=${errors} onChange=${change} />
      <${Same} answer=${answer} />
    </div>
    <div class="start">
      ${error && html`<${Problem} title="The form could not be checked" error=${error} />`}
      ${failed && html`<${Problem} title="The run was not started" error=${failed} />`}
      <div class="actions">
        <button class="primary" disabled=${isBusy} onClick=${submit}>${isBusy ? "Starting…" : "Start run"}</button>
        <${Summary} draft=${draft} errors=${errors} answer=${answer} />
      </div>
    </div>
  </div>`;
}

/** What the pipeline is. @param {{overview: Overview}} props */
function About({ overview }) {
  const { description, path, steps, warnings } = overview;
  const count = `${steps.length} step${steps.length === 1 ? "" : "s"}`;
  return html`<div class="about">
    ${description && html`<${LongText} look="description" text=${description} />`}
    <p class="muted"><code>${path}</code> · <span title=${steps.join(", ")}>${count}</span></p>
    ${warnings.map((each) => html`<${Notice} key=${each} kind="warn">${each}<//>`)}
  </div>`;
}

/**
 * What will be started, and what is missing.
 * @param {{draft: DraftState, errors: Map<string, string>, answer: CheckAnswer}} props
 */
function Summary({ draft, errors, answer }) {
  const parts = [
    errors.size && `${errors.size} field${errors.size === 1 ? "" : "s"} to correct`,
    answer.refusals.length && "cannot run here",
    draft.parameters.size ? `${draft.parameters.size} changed` : "default values",
  ].filter(Boolean);
  const look = errors.size || answer.refusals.length ? "error" : "muted";
  return html`<span class=${look} aria-live="polite">${parts.join(" · ")}</span>`;
}

/**
 * Move to the first wrong field when the run is to be started, as soon as the errors are known.
 * @param {Map<string, string>} errors
 * @returns {[() => void, () => void]} - What begins it, and what ends it because the form has changed.
 */
function useFirstError(errors) {
  const [isWanted, setIsWanted] = useState(false);
  useEffect(() => {
    if (!isWanted || !errors.size) return;
    setIsWanted(false);
    /** @type {HTMLElement | null} */ (document.querySelector('.creating [aria-invalid="true"]'))?.focus();
  }, [isWanted, errors]);
  return [() => setIsWanted(true), () => setIsWanted(false)];
}
