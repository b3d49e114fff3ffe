// The settings of a run besides its values: name, labels, what happens after a failure, and the cache.
import { html, Section, Select } from "../ui/ui.js";
import { Field } from "./field.js";

const AFTER_FAILURE = [
  ["false", "run the steps that do not depend on it"],
  ["true", "start no more steps"],
];

const CACHE = [
  ["true", "as set in the pipeline"],
  ["false", "run every step"],
];

/** @param {{draft: DraftState, errors: Map<string, string>, onChange: (change: Change) => void}} props */
export function Settings({ draft, errors, onChange }) {
  const { display_name, labels, fail_fast, use_cache } = draft.settings;
  const set = (/** @type {string} */ name, /** @type {any} */ text) => onChange({ part: "settings", name, text });
  const write = (/** @type {string} */ name) => (/** @type {any} */ event) => set(name, event.target.value);
  const choose = (/** @type {string} */ name) => (/** @type {string} */ text) => set(name, text === "true");
  const name = (/** @type {object} */ aria) =>
    html`<input ...${aria} value=${display_name} placeholder="the ID of the run" onInput=${write("display_name")} />`;
  const lines = (/** @type {object} */ aria) =>
    html`<textarea ...${aria} rows="2" value=${labels} onInput=${write("labels")}></textarea>`;
  const failure = (/** @type {object} */ aria) =>
    html`<${Select} ...${aria} value=${`${fail_fast}`} choices=${AFTER_FAILURE} onChoose=${choose("fail_fast")} />`;
  const cache = (/** @type {object} */ aria) =>
    html`<${Select} ...${aria} value=${`${use_cache}`} choices=${CACHE} onChoose=${choose("use_cache")} />`;
  const inTheList = { id: "display-name", name: "Display name", hint: "Shown in the list of runs." };
  const afterFailure = "Running steps finish in both cases.";
  const ofCache = "A step with the same inputs as before is not run again.";
  return html`<${Section} title="Run settings">
    <div class="fields">
      <${Field} ...${inTheList} error=${errors.get("display_name")}>${name}<//>
      <${Field} id="labels" name="Labels" error=${errors.get("labels")} hint="One per line: name=value.">${lines}<//>
      <${Field} id="failure-policy" name="After a failed step" hint=${afterFailure}>${failure}<//>
      <${Field} id="cache" name="Cached results" hint=${ofCache}>${cache}<//>
    </div>
  <//>`;
}
