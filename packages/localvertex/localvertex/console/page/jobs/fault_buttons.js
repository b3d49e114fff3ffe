// The buttons that break a replica, each with what will happen.
import { post } from "../server/api.js";
import { Confirm, html, useState } from "../ui/ui.js";

/** @typedef {{path: string, task?: string}} Target - Where requests go: a step of a run, or a job of the API. */

const GRACE_SECONDS = 30;

/** The title of each action, and its effects. @type {Record<string, string[]>} */
const ACTIONS = {
  kill: [
    "Kill",
    "The process gets SIGKILL and ends at once, without saving.",
    "The job then restarts by Vertex AI's rules: this replica, or all replicas if the job requires it.",
  ],
  freeze: [
    "Freeze",
    "The process gets SIGSTOP: it neither continues nor ends. Vertex AI does not detect this.",
    "This project's trainer detects it: the peers exit within 15 seconds, or within 5 minutes while the job starts.",
    "Without peers, the job waits until you kill this replica or until its timeout.",
  ],
  preempt: [
    "Preempt",
    "The machine announces its preemption. The process gets SIGTERM, and SIGKILL after the grace time.",
    "The whole job then restarts, at most 6 times.",
  ],
};

/**
 * @param {object} props
 * @param {Target} props.target
 * @param {{name: string, condition: string}} props.replica - See docs/console.md.
 */
export function FaultButtons({ target, replica: { name, condition } }) {
  const [action, setAction] = useState("");
  const isAlive = condition === "running" || condition === "frozen" || condition === "leaving";
  return html`<div class="faults" role="group" aria-label=${`Break ${name}`}>
    ${Object.entries(ACTIONS).map(
      ([id, [title]]) => html`<button key=${id} aria-label=${`${title} ${name}`} onClick=${() => setAction(id)}
        disabled=${!isAlive || (id !== "kill" && condition !== "running")}>${title}</button>`,
    )}
    ${action && html`<${Ask} target=${target} replica=${name} action=${action} onClose=${() => setAction("")} />`}
  </div>`;
}

/** @param {{target: Target, replica: string, action: string, onClose: () => void}} props */
function Ask({ target, replica, action, onClose }) {
  const [grace, setGrace] = useState(String(GRACE_SECONDS));
  const [title, ...texts] = ACTIONS[action];
  const isPreemption = action === "preempt";
  const body = { replica, action, ...(target.task && { task: target.task }) };
  const ask = () => post(target.path, { ...body, ...(isPreemption && { grace_seconds: Number(grace) }) });
  return html`<${Confirm} title=${`${title} ${replica}?`} action=${`${title} it`} onConfirm=${ask} onClose=${onClose}>
    ${texts.map((text) => html`<p key=${text}>${text}</p>`)}
    ${
      isPreemption &&
      html`<label>Grace time in seconds${" "}
        <input type="number" min="0" max="3600" value=${grace}
          onInput=${(/** @type {any} */ event) => setGrace(event.target.value)} /></label>`
    }
    <p class="muted">Training should resume from its last checkpoint and neither lose nor repeat a step that counts.</p>
  <//>`;
}
