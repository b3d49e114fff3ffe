// One custom job of the API: its request, its replicas, and their logs.

import { Log, offsetIn } from "../logs/log.js";
import { post, remove, useEvents } from "../server/server.js";
import {
  Asking,
  Confirm,
  Facts,
  go,
  html,
  isFinal,
  Loaded,
  link,
  Page,
  Problem,
  Section,
  Time,
  useState,
} from "../ui/ui.js";
import { useJob } from "./live_job.js";
import { Replicas, Training } from "./replicas.js";

const PARENT = ["Runs", "#/runs"];

/** @param {ViewProps} props */
export default function Job({ params: { id }, query }) {
  const file = query.get("file") ?? "";
  const [resource, setResource] = useState(/** @type {any} */ (null));
  const [missing, setMissing] = useState("");
  const [live, handlers] = useJob(id, file);
  useEvents(
    { job: id, file },
    {
      ...handlers,
      resource: ({ job }) => setResource(job),
      end: () => setMissing("This job does not exist; it may have been deleted."),
    },
  );
  if (missing || !resource)
    return html`<${Page} title=${id} parent=${PARENT}><${Loaded} title="No job to show" error=${missing} /><//>`;
  const { state, displayName, name, createTime, endTime, error } = resource;
  const actions = isFinal(state)
    ? html`<${Asking} key="delete" verb="Delete" dialog=${Delete} of=${{ name }} />`
    : html`<${Asking} key="cancel" verb="Cancel" dialog=${Cancel} of=${{ name }}
        disabled=${state === "JOB_STATE_CANCELLING"} />`;
  return html`<${Page} title=${displayName} state=${state} parent=${PARENT} actions=${actions}>
    <${Facts} facts=${[
      ["Created", html`<${Time} at=${createTime} />`],
      ["Ended", html`<${Time} at=${endTime} />`],
      ["Resource", html`<code>${name}</code>`],
    ]} />
    ${error && html`<${Problem} title="The job failed" error=${error.message} />`}
    ${
      live.job &&
      html`<${Replicas} job=${live.job} target=${{ path: `/local/jobs/${id}:fault` }}
        logOf=${(file) => link(["jobs", id], { file })} />
        <${Training} job=${live.job} steps=${live.steps} />`
    }
    <${Section} title="Log">
      <${Log} key=${file} path=${`/local/jobs/${id}/log`} task=${id} log=${live.log} setLog=${live.setLog}
        at=${offsetIn(query)}
        addressOf=${(change) => link(["jobs", id], { ...Object.fromEntries(query), ...change })} />
    <//>
  <//>`;
}

/** @param {CancelProps} props */
const Cancel = ({
  name,
  onClose,
}) => html`<${Confirm} title="Cancel the job?" action="Cancel the job" onClose=${onClose}
    onConfirm=${() => post(`/v1/${name}:cancel`)}>
  <p>Its replicas get SIGTERM, and SIGKILL after 10 seconds. The job cannot be resumed.</p><//>`;

/** @param {{name: string, onClose: () => void}} props */
const Delete = ({ name, onClose }) => html`<${Confirm} title="Delete the job?" action="Delete" onClose=${onClose}
    onConfirm=${() => remove(`/v1/${name}`).then(() => go("#/runs"))}>
  <p>The job and its logs are deleted. What it wrote elsewhere stays.</p><//>`;
