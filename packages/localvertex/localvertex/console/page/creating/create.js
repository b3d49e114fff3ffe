// Create a run: choose a compiled pipeline, see its checks, fill in its form, start it.

import { Graph, useGraph } from "../graph/graph.js";
import { post, useAction } from "../server/server.js";
import {
  Code,
  go,
  html,
  Loaded,
  LongText,
  link,
  Notice,
  Page,
  Problem,
  plural,
  Section,
  useEffect,
  useFileDrop,
  useState,
} from "../ui/ui.js";
import { commandOf } from "./command.js";
import { prepared, useChecks, useDraft } from "./draft_state.js";
import { Form, MachineCheck, Refusals } from "./form.js";
import { usePipeline } from "./pipeline.js";

/** @param {ViewProps} props */
export default function Create({ query }) {
  const { overview, server, key, choice, leave } = usePipeline(query, "#/create");
  useEffect(() => {
    // The button that chose the file is gone.
    if (overview && document.activeElement === document.body)
      document.getElementById("main")?.focus({ preventScroll: true });
  }, [overview]);
  const parent = overview && ["Choose another pipeline", "#/create"];
  const title = overview ? `Create run: ${overview.pipeline}` : "Create run";
  return html`<div onClickCapture=${(event) => event.target.closest?.("a.parent") && leave()}>
    <${Page} title=${title} parent=${parent}>
      ${choice}
      ${overview && html`<${Draft} key=${key} overview=${overview} server=${server} />`}
    <//>
  </div>`;
}

/** @param {{overview: Overview, server: ServerInfo | null}} props */
function Draft({ overview, server }) {
  const [draft, setDraft] = useDraft(overview);
  const [isTried, setIsTried] = useState(false);
  const { answer, errors, error } = useChecks(overview, draft);
  const [run, { isBusy, error: notStarted }] = useAction(async () => {
    const { location, request } = await prepared(overview, draft);
    const { name } = await post(`/v1/${location}/pipelineJobs`, request);
    go(link(["runs", name.split("/").pop()]));
  });
  // Whether to move to the first wrong field, as soon as the errors are known and while the form has not changed.
  const [isSought, setIsSought] = useState(false);
  useEffect(() => {
    if (!isSought || !errors.size) return;
    setIsSought(false);
    /** @type {HTMLElement | null} */ (document.querySelector('.creating [aria-invalid="true"]'))?.focus();
  }, [isSought, errors]);
  const change = (/** @type {Change} */ each) => {
    setIsSought(false);
    setDraft(each);
  };
  const submit = () => {
    setIsTried(true);
    setIsSought(true);
    if (!errors.size) run();
  };
  useFileDrop(() => {});
  const failed = notStarted?.details.length ? null : notStarted;
  const numRefused = answer.machine_check.findings.filter((each) => each.severity === "error").length;
  const isWrong = errors.size > 0 || answer.refusals.length > 0 || numRefused > 0;
  // A required field that is still empty does not disable the button: it leads there.
  const isDisabled = numRefused > 0 || [...draft.parameters.keys()].some((name) => errors.has(`parameters.${name}`));
  const summary = [
    numRefused && "Vertex AI would refuse the machines",
    errors.size && `${plural(errors.size, "field")} to correct`,
    answer.refusals.length && "cannot run here",
    draft.parameters.size ? `${draft.parameters.size} changed` : "default values",
  ];
  // Not a form element: each button of a part in it, such as Copy, would start the run.
  return html`<div class="creating">
    <div>
      <${About} overview=${overview} />
      <${Refusals} refusals=${answer.refusals} notes=${answer.notes} />
    </div>
    <div class="start">
      ${error && html`<${Problem} title="The form could not be checked" error=${error} />`}
      ${failed && html`<${Problem} title="The run was not started" error=${failed} />`}
      <div class="actions">
        <button class="primary" disabled=${isBusy || isDisabled} onClick=${submit}>
          ${isBusy ? "Starting…" : "Start run"}
        </button>
        <span class=${isWrong ? "error" : "muted"} aria-live="polite">${summary.filter(Boolean).join(" · ")}</span>
      </div>
    </div>
    <aside><${MachineCheck} check=${answer.machine_check} draft=${draft} server=${server} onChange=${change} /></aside>
    <div class="main">
      <${Form} overview=${overview} draft=${draft} errors=${errors} isTried=${isTried} onChange=${change} />
      <${Preview} content=${overview.content} />
      <${Section} title="The same run in a terminal">
        ${
          errors.size
            ? html`<p class="muted">Correct the form first.</p>`
            : html`<${Code} text=${commandOf(overview, draft)} />`
        }
      <//>
    </div>
  </div>`;
}

/** @param {{overview: Overview}} props */
function About({ overview }) {
  const { description, path, warnings } = overview;
  return html`<div class="about">
    ${description && html`<${LongText} look="description" text=${description} />`}
    <p class="muted"><code>${path}</code></p>
    ${warnings.map((each) => html`<${Notice} key=${each} kind="warn">${each}<//>`)}
  </div>`;
}

/** The graph of a pipeline that has not run yet. @param {{content: string}} props */
function Preview({ content }) {
  const [graph, toggle] = useGraph((closed) => post("/local/graph", { content, ...closed }), content);
  return html`<${Section} title="Graph">
    <${Loaded} title="No graph" ...${graph}>${(data) => html`<${Graph} graph=${data} onToggle=${toggle} />`}<//>
  <//>`;
}
