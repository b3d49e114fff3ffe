// One pipeline on its way to a run: what it is, its form, its checks, and the button that starts it.

import { Graph, useGraph } from "../graph/graph.js";
import { post } from "../server/api.js";
import { useAction } from "../server/load.js";
import { Code, html, Loading, LongText, Notice, Problem, Section, Tabs, useEffect, useState } from "../ui/ui.js";
import { MachineCheck, Refusals } from "./checks.js";
import { useFileDrop } from "./choose.js";
import { start, useChecks, useDraft } from "./draft_state.js";
import { Form } from "./form.js";
import { Settings } from "./settings.js";

const EQUIVALENTS = [
  { id: "command", title: "Command" },
  { id: "program", title: "Python" },
];

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
      <${Equivalents} answer=${answer} />
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

/** The graph of a pipeline that has not run yet. @param {{content: string}} props */
function Preview({ content }) {
  const { graph, error, toggle } = useGraph((closed) => post("/local/graph", { content, closed }), [content]);
  return html`<${Section} title="Graph">
    ${error && html`<${Problem} title="No graph" error=${error} />`}
    ${!graph && !error && html`<${Loading} />`}
    ${graph && html`<${Graph} graph=${graph} onToggle=${toggle} />`}
  <//>`;
}

/** The same run as a command line, and as a program with Google's SDK. @param {{answer: CheckAnswer}} props */
function Equivalents({ answer }) {
  const [selected, select] = useState("command");
  const text = selected === "command" ? answer.command : answer.program;
  const none = answer.no_program && selected === "program" ? `Not available: ${answer.no_program}.` : "";
  return html`<${Section} title="The same run without this page">
    <${Tabs} label="Command or program" tabs=${EQUIVALENTS} selected=${selected} onSelect=${select}>
      ${text ? html`<${Code} text=${text} />` : html`<p class="muted">${none || "Correct the form first."}</p>`}
    <//>
  <//>`;
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
