// The state of a run, step, job or schedule: a symbol and a word, never a colour alone.
import { html } from "./html.js";

/** @type {Record<string, StateLook>} */
const STATES = {
  SUCCEEDED: ["Succeeded", "good", "M4.5 8.3 7 10.8l4.5-5.3"],
  COMPLETE: ["Completed", "good", "M4.5 8.3 7 10.8l4.5-5.3"],
  COMPLETED: ["Completed", "good", "M4.5 8.3 7 10.8l4.5-5.3"],
  ACTIVE: ["Active", "good", "M6.3 5v6l5-3-5-3Z"],
  SKIPPED: ["Cached", "good", "M4 5l4 3-4 3M8.5 5l4 3-4 3"],
  GIVEN: ["Given", "idle", "M8 4v5M5.8 7 8 9.4 10.2 7M5 11.5h6"],
  RUNNING: ["Running", "busy", ""],
  CANCELLING: ["Stopping", "busy", ""],
  FAILED: ["Failed", "bad", "M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2"],
  DAMAGED: ["Damaged", "bad", "M8 4.2v4.6M8 11.3v.4"],
  CANCELLED: ["Cancelled", "warn", "M5.5 5.5h5v5h-5z"],
  PAUSED: ["Paused", "warn", "M6.2 5v6M9.8 5v6"],
  PENDING: ["Pending", "idle", "M5 8h.1M8 8h.1M11 8h.1"],
  QUEUED: ["Queued", "idle", "M5 8h.1M8 8h.1M11 8h.1"],
  NOT_TRIGGERED: ["Not triggered", "idle", "M5 8h6"],
};

/** @type {StateLook} */
const UNKNOWN = ["Unknown", "idle", "M8 8h.1"];

/** The state without Vertex's prefix, such as PIPELINE_STATE_. @param {string} state */
export const plain = (state) => String(state ?? "").replace(/^[A-Z]+_STATE_/, "");

/** A state may be any text, even the name of a method that all objects have. @param {string} state */
const described = (state) => (Object.hasOwn(STATES, plain(state)) ? STATES[plain(state)] : UNKNOWN);

/** @param {string} state */
export const label = (state) => described(state)[0];

/** The kind of a state, which is also the class of its colours. @param {string} state */
export const kind = (state) => described(state)[1];

/** Whether something can still change. @param {string} state */
export const isFinal = (state) => !["RUNNING", "PENDING", "QUEUED", "CANCELLING"].includes(plain(state));

/** @param {StateProps} props */
export function State({ state, text }) {
  return html`<span class="state ${kind(state)}">${StateSymbol({ state })}${text ?? label(state)}</span>`;
}

/** The symbol alone; the word must be beside it. @param {{state: string}} props */
export function StateSymbol({ state }) {
  const [, of, path] = described(state);
  return html`<svg class="symbol ${of}" width="16" height="16" viewBox="0 0 16 16"
      aria-hidden="true">
    <circle cx="8" cy="8" r="7" />
    <path d=${path || "M8 1a7 7 0 0 1 7 7"} />
  </svg>`;
}
