// One custom job of the API: what it was asked for, its replicas, and their logs.

import { Log, offsetIn } from "../logs/log.js";
import { added, EMPTY } from "../logs/window.js";
import { post, remove } from "../server/api.js";
import { useEvents } from "../server/load.js";
import { go, link } from "../ui/address.js";
import { Confirm, html, isFinal, Loading, Page, Problem, Section, State, Time, useState } from "../ui/ui.js";
import { withPoints } from "./curves.js";
import { Replicas } from "./replicas.js";

/** @param {{params: Record<string, string>, query: URLSearchParams}} props */
export default function Job({ params, query }) {
  const { id } = params;
  const live = useJob(id, query.get("file") ?? "");
  const { resource, job, steps, isDeleted } = live;
  const parent = { title: "Runs", href: link(["runs"]) };
  if (isDeleted)
    return html`<${Page} title=${id} parent=${parent}>
      <${Problem} title="No job to show" error="This job does not exist; it may have been deleted." />
    <//>`;
  if (!resource) return html`<${Page} title=${id} parent=${parent}><${Loading} /><//>`;
  const logOf = (/** @type {string} */ file) => link(["jobs", id], { file });
  const addressOf = (/** @type {Record<string, string>} */ change) =>
    link(["jobs", id], { ...Object.fromEntries(query), ...change });
  const heading = html`<bdi>${resource.displayName}</bdi> <${State} state=${resource.state} />`;
  const actions = html`<${Actions} job=${resource} />`;
  const target = { path: `/local/jobs/${id}:fault` };
  return html`<${Page} title=${resource.displayName} heading=${heading} parent=${parent} actions=${actions}>
    <dl class="job-facts">
      <div><dt>Created</dt><dd><${Time} at=${resource.createTime} /></dd></div>
      <div><dt>Ended</dt><dd><${Time} at=${resource.endTime} /></dd></div>
      <div><dt>Resource</dt><dd><code>${resource.name}</code></dd></div>
    </dl>
    ${resource.error && html`<${Problem} title="The job failed" error=${resource.error.message} />`}
    ${job && html`<${Replicas} job=${job} steps=${steps} target=${target} logOf=${logOf} />`}
    <${Section} title="Log">
      <${Log} key=${query.get("file") ?? ""} path=${`/local/jobs/${id}/log`} task=${id}
        log=${live.log} setLog=${live.setLog} at=${offsetIn(query)} addressOf=${addressOf} />
    <//>
  <//>`;
}

/**
 * Follow a job and one of its logs.
 * @param {string} id @param {string} file
 */
function useJob(id, file) {
  const [state, setState] = useState(
    /** @type {any} */ ({ resource: null, job: null, steps: new Map(), isDeleted: false }),
  );
  const [log, setLog] = useState(EMPTY);
  useEvents(
    { job: id, file },
    {
      resource: (event) => setState((/** @type {any} */ previous) => ({ ...previous, resource: event.job })),
      job: (event) => setState((/** @type {any} */ previous) => ({ ...previous, job: event })),
      steps: (event) => setState((/** @type {any} */ previous) => withPoints(previous, event)),
      log: (event) => setLog((previous) => added(previous, event)),
      end: () => setState((/** @type {any} */ previous) => ({ ...previous, isDeleted: true })),
    },
  );
  return { ...state, log, setLog };
}

/** What Vertex's own methods do with a job. @param {{job: any}} props */
function Actions({ job }) {
  const [asked, setAsked] = useState("");
  const path = `/v1/${job.name}`;
  const isStopping = job.state === "JOB_STATE_CANCELLING";
  const cancel = () => post(`${path}:cancel`);
  const close = () => setAsked("");
  const erase = async () => {
    await remove(path);
    go(link(["runs"]));
  };
  return html`
    ${
      isFinal(job.state)
        ? html`<button onClick=${() => setAsked("delete")}>Delete</button>`
        : html`<button onClick=${() => setAsked("cancel")} disabled=${isStopping}>Cancel</button>`
    }
    ${
      asked === "cancel" &&
      html`<${Confirm} title="Cancel the job?" action="Cancel the job" onClose=${close} onConfirm=${cancel}>
        <p>Its replicas get SIGTERM, and SIGKILL after 10 seconds. The job cannot be resumed.</p><//>`
    }
    ${
      asked === "delete" &&
      html`<${Confirm} title="Delete the job?" action="Delete" onClose=${close} onConfirm=${erase}>
        <p>The job and its logs are deleted. What it wrote elsewhere stays.</p><//>`
    }`;
}
