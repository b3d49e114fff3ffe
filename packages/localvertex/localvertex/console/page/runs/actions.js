// The buttons of a run: stop, retry, run again, compare, delete.

import { post, remove } from "../server/api.js";
import { useAction } from "../server/load.js";
import { go, link } from "../ui/address.js";
import { Confirm, Dialog, html, isFinal, Notice, Problem, plain, useState } from "../ui/ui.js";

/** @typedef {"" | "stop" | "retry" | "delete"} Asked */

/** @param {{run: any}} props */
export function Actions({ run }) {
  const [asked, setAsked] = useState(/** @type {Asked} */ (""));
  const hasEnded = isFinal(run.state);
  const canRetry = hasEnded && plain(run.state) !== "SUCCEEDED";
  const Asking = asked && DIALOGS[asked];
  return html`
    ${!hasEnded && html`<button onClick=${() => setAsked("stop")}>Stop</button>`}
    ${canRetry && html`<button class="primary" onClick=${() => setAsked("retry")}>Retry</button>`}
    <a class="button" href=${link(["create"], { run: run.id })}>Run again</a>
    <a class="button" href=${link(["compare"], { runs: run.id })}>Compare</a>
    <button disabled=${!hasEnded} title=${hasEnded ? "" : "Stop the run before you delete it"}
      onClick=${() => setAsked("delete")}>Delete</button>
    ${Asking && html`<${Asking} run=${run} onClose=${() => setAsked("")} />`}`;
}

/** @type {Record<string, (props: {run: any, onClose: () => void}) => any>} */
const DIALOGS = { stop: Stop, retry: Retry, delete: Delete };

/** @param {{run: any, onClose: () => void}} props */
function Stop({ run, onClose }) {
  const [stop, { isBusy, error }] = useAction(async (at_once) => {
    await post(`/local/runs/${run.id}:stop`, { at_once });
    onClose();
  });
  if (run.is_ending) return html`<${Ending} run=${run} onClose=${onClose} />`;
  if (!run.is_running_here) return html`<${Elsewhere} run=${run} onClose=${onClose} />`;
  const actions = html`
    <button onClick=${onClose}>Cancel</button>
    <button class="danger" disabled=${isBusy} onClick=${() => stop(true)}>Stop at once</button>
    <button class="primary" disabled=${isBusy} onClick=${() => stop(false)}>Stop gracefully</button>`;
  return html`<${Dialog} title="Stop this run?" onClose=${onClose} actions=${actions}>
    <p>Run <bdi class="mono">${run.id}</bdi></p>
    <p><strong>Gracefully</strong>: its processes get SIGTERM and time to save a checkpoint, as on Vertex AI.</p>
    <p><strong>At once</strong>: its processes are killed. Work since the last checkpoint is lost.</p>
    <p class="muted">Finished steps are kept. Retry resumes the run later.</p>
    ${error && html`<${Problem} error=${error} />`}
  <//>`;
}

/** A run of a server that was killed. @param {{run: any, onClose: () => void}} props */
function Ending({ run, onClose }) {
  return html`<${Dialog} title="This run is ending" onClose=${onClose}>
    <p>The server that ran <bdi class="mono">${run.id}</bdi> was killed.</p>
    <p>The last processes of the run end by themselves, within the grace time.</p>
  <//>`;
}

/** A run that another process executes. @param {{run: any, onClose: () => void}} props */
function Elsewhere({ run, onClose }) {
  return html`<${Dialog} title="Stop this run in its terminal" onClose=${onClose}>
    <p>Another process started run <bdi class="mono">${run.id}</bdi>. Only that process can stop it.</p>
    <p>Press Ctrl-C in its terminal: once to stop gracefully, twice to stop at once.</p>
  <//>`;
}

/** @param {{run: any, onClose: () => void}} props */
function Retry({ run, onClose }) {
  const retry = () => post(`/local/runs/${run.id}:retry`);
  return html`<${Confirm} title="Retry this run?" action="Retry" isDangerous=${false} onConfirm=${retry}
      onClose=${onClose}>
    <p>Run <bdi class="mono">${run.id}</bdi> resumes with its original values.</p>
    <p>Finished steps are not repeated. All others start again, and training resumes from its last checkpoint.</p>
    ${run.is_own === false && html`<${Notice}>It will run in this server, not in its terminal.<//>`}
  <//>`;
}

/** @param {{run: any, onClose: () => void}} props */
function Delete({ run, onClose }) {
  const deleted = async () => {
    await remove(`/local/runs/${run.id}`);
    go(link(["runs"]));
  };
  return html`<${Confirm} title="Delete this run?" action="Delete run" onConfirm=${deleted} onClose=${onClose}>
    <p>This deletes run <bdi class="mono">${run.id}</bdi> with its record, its logs and the outputs of its steps:</p>
    <p><bdi class="mono">${run.work_dir}/${run.id}</bdi></p>
    <p>Registered models keep their own copies. This cannot be undone.</p>
  <//>`;
}
