// The settings of a run besides its values: name, labels, what happens after a failure, and the cache.
import { html } from "../../html.js";
import { Section } from "../../ui/page.js";
import { Field } from "./field.js";

/**
 * @param {{draft: DraftState, errors: Map<string, string>, onChange: (change: any) => void}} props
 */
export function Settings({ draft, errors, onChange }) {
  const { display_name, labels, fail_fast, use_cache } = draft.settings;
  const set = (/** @type {string} */ name) => (/** @type {any} */ text) => onChange({ part: "settings", name, text });
  return html`<${Section} title="Run settings">
    <div class="fields">
      <${Field} id="display-name" name="Display name" error=${errors.get("display_name")}
          hint="Shown in the list of runs.">
        ${(/** @type {object} */ aria) => html`<input ...${aria} value=${display_name} placeholder="the id of the run"
          onInput=${(/** @type {any} */ event) => set("display_name")(event.target.value)} />`}
      <//>
      <${Field} id="labels" name="Labels" error=${errors.get("labels")} hint="One per line: name=value.">
        ${(/** @type {object} */ aria) => html`<textarea ...${aria} rows="2" value=${labels}
          onInput=${(/** @type {any} */ event) => set("labels")(event.target.value)}></textarea>`}
      <//>
      <${Field} id="failure-policy" name="After a failed step" hint="Steps that are running end in both cases.">
        ${(/** @type {object} */ aria) => html`<${Choice} aria=${aria} value=${String(fail_fast)}
            onChoose=${(/** @type {string} */ text) => set("fail_fast")(text === "true")}
          choices=${[["false", "run what does not depend on it"], ["true", "start no more steps"]]} />`}
      <//>
      <${Field} id="cache" name="Cached results" hint="A step with the same inputs as before need not run again.">
        ${(/** @type {object} */ aria) => html`<${Choice} aria=${aria} value=${String(use_cache)}
            onChoose=${(/** @type {string} */ text) => set("use_cache")(text === "true")}
          choices=${[["true", "as the pipeline says"], ["false", "run every step"]]} />`}
      <//>
    </div>
  <//>`;
}

/** @param {{aria: object, value: string, choices: [string, string][], onChoose: (value: string) => void}} props */
function Choice({ aria, value, choices, onChoose }) {
  return html`<select ...${aria} value=${value} onChange=${(/** @type {any} */ event) => onChoose(event.target.value)}>
    ${choices.map(
      ([each, title]) => html`<option key=${each} value=${each} selected=${each === value}>${title}</option>`,
    )}
  </select>`;
}
