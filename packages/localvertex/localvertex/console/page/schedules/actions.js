// What can be done with a schedule: run it now, pause it, resume it with or without the missed runs, delete it.

import { post, remove } from "../server/api.js";
import { useAction } from "../server/load.js";
import { go, link } from "../ui/address.js";
import { Confirm, Dialog, html, Problem, useState } from "../ui/ui.js";

/** @typedef {{name: string, displayName: string, state: string}} Schedule */

/** The number of a schedule. @param {Schedule} schedule */
export const idOf = ({ name }) => name.slice(name.lastIndexOf("/") + 1);

/** @param {Schedule} schedule */
const path = ({ name }) => `/v1/${name}`;

/**
 * The buttons of a schedule.
 * @param {{schedule: Schedule, onChange: () => void, onDelete: () => void}} props
 */
export function ScheduleActions({ schedule, onChange, onDelete }) {
  const [asked, ask] = useState("");
  const close = () => ask("");
  const [start, starting] = useAction(async () => {
    const { name } = await post(`/local/schedules/${idOf(schedule)}:run`);
    go(link(["runs", name.slice(name.lastIndexOf("/") + 1)]));
  });
  const [pause, pausing] = useAction(async () => {
    await post(`${path(schedule)}:pause`);
    onChange();
  });
  const error = starting.error ?? pausing.error;
  const canRun = ["ACTIVE", "PAUSED", "COMPLETED"].includes(schedule.state);
  const button = (/** @type {string} */ verb, /** @type {() => void} */ act, isBusy = false) =>
    html`<button aria-label=${`${verb}: ${schedule.displayName}`} disabled=${isBusy} onClick=${() => act()}>
      ${verb}
    </button>`;
  return html`
    ${canRun && button("Run now", start, starting.isBusy)}
    ${schedule.state === "ACTIVE" && button("Pause", pause, pausing.isBusy)}
    ${schedule.state === "PAUSED" && button("Resume", () => ask("resume"))}
    ${button("Delete", () => ask("delete"))}
    ${asked === "resume" && html`<${Resume} schedule=${schedule} onDone=${onChange} onClose=${close} />`}
    ${asked === "delete" && html`<${Delete} schedule=${schedule} onDone=${onDelete} onClose=${close} />`}
    ${error && html`<${Refused} error=${error} />`}`;
}

/** Why a button did nothing; the same error is shown once. @param {{error: Error}} props */
function Refused({ error }) {
  const [closed, close] = useState(/** @type {Error | null} */ (null));
  if (closed === error) return null;
  return html`<${Dialog} title="Not done" onClose=${() => close(error)}><${Problem} error=${error} /><//>`;
}

/** @param {{schedule: Schedule, onDone: () => void, onClose: () => void}} props */
function Resume({ schedule, onDone, onClose }) {
  const [catchUp, setCatchUp] = useState(false);
  const resume = async () => {
    await post(`${path(schedule)}:resume`, { catchUp });
    onDone();
  };
  const choices = /** @type {Array<[boolean, string, string]>} */ ([
    [false, "Continue with the next run", "Runs that were due during the pause are skipped."],
    [true, "Catch up", "Runs that were due during the pause are started first, one after the other."],
  ]);
  return html`<${Confirm} title=${`Resume ${schedule.displayName}`} action="Resume" isDangerous=${false}
      onConfirm=${resume} onClose=${onClose}>
    ${choices.map(
      ([value, title, text]) => html`<label key=${title} class="option">
        <input type="radio" name="catch-up" checked=${catchUp === value} onChange=${() => setCatchUp(value)} />
        <span>${title}<span class="muted small">${text}</span></span>
      </label>`,
    )}
  <//>`;
}

/** @param {{schedule: Schedule, onDone: () => void, onClose: () => void}} props */
function Delete({ schedule, onDone, onClose }) {
  const confirm = async () => {
    await remove(path(schedule));
    onDone();
  };
  const title = `Delete ${schedule.displayName}?`;
  return html`<${Confirm} title=${title} action="Delete" onConfirm=${confirm} onClose=${onClose}>
    <p>No more runs are started. The runs that it has started stay, and those that are running continue.</p>
  <//>`;
}
