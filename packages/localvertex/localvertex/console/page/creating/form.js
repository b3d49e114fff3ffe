// The form made from a pipeline: its parameters and input artifacts, with their types, defaults and errors.
import { html, Section, useMemo, useState } from "../ui/ui.js";
import { ArtifactField, ParameterField } from "./inputs.js";

const MANY = 10;

/**
 * @param {{overview: Overview, draft: DraftState, errors: Map<string, string>, isTried: boolean,
 *   onChange: (change: any) => void}} props - `isTried`: show also that required values are missing.
 */
export function Form({ overview, draft, errors, isTried, onChange }) {
  const [text, setText] = useState("");
  const [isOnlyChanged, setIsOnlyChanged] = useState(false);
  const sorted = useMemo(
    () =>
      [...overview.parameters].sort(
        (a, b) => Number(b.is_required) - Number(a.is_required) || a.name.localeCompare(b.name),
      ),
    [overview],
  );
  const isWrong = (/** @type {ParameterInfo} */ each) => isTried && errors.has(`parameters.${each.name}`);
  const shown = sorted.filter(
    (each) =>
      isWrong(each) ||
      ((!isOnlyChanged || draft.parameters.has(each.name)) && isMatch(each, text.trim().toLowerCase())),
  );
  const errorOf = (/** @type {string} */ name) =>
    isTried || draft.parameters.has(name) ? errors.get(`parameters.${name}`) : undefined;
  const tools =
    overview.parameters.length > MANY &&
    html`<${Tools} text=${text} onText=${setText}
    isOnlyChanged=${isOnlyChanged} onOnlyChanged=${setIsOnlyChanged} shown=${shown.length} total=${sorted.length} />`;
  const reset = html`<button type="button" disabled=${!draft.parameters.size}
    onClick=${() => onChange({ part: "parameters", text: null })}>Reset all</button>`;
  const none = sorted.length ? "No parameter matches." : "The pipeline has no parameters.";
  return html`
    <${Artifacts} artifacts=${overview.artifacts} draft=${draft} errors=${errors} isTried=${isTried}
      onChange=${onChange} />
    <${Section} title="Parameters" actions=${sorted.length > 0 && reset}>
      ${tools}
      ${!shown.length && html`<p class="muted">${none}</p>`}
      <div class="fields" hidden=${!shown.length}>
        ${shown.map(
          (each) => html`<${ParameterField} key=${each.name} parameter=${each} error=${errorOf(each.name)}
          text=${draft.parameters.get(each.name)} onChange=${onChange} />`,
        )}
      </div>
    <//>`;
}

/** @param {ParameterInfo} parameter @param {string} text */
const isMatch = ({ name, description }, text) => `${name} ${description}`.toLowerCase().includes(text);

/** What finds a parameter among many. @param {any} props */
function Tools({ text, onText, isOnlyChanged, onOnlyChanged, shown, total }) {
  return html`<div class="toolbar">
    <input type="search" aria-label="Find a parameter" placeholder="Find a parameter" value=${text}
      onInput=${(/** @type {any} */ event) => onText(event.target.value)} />
    <label class="check"><input type="checkbox" checked=${isOnlyChanged}
      onChange=${(/** @type {any} */ event) => onOnlyChanged(event.target.checked)} /> Only changed</label>
    <span class="muted end" aria-live="polite">${shown} of ${total}</span>
  </div>`;
}

/** @param {any} props */
function Artifacts({ artifacts, draft, errors, isTried, onChange }) {
  if (!artifacts.length) return null;
  const errorOf = (/** @type {string} */ name) =>
    isTried || draft.artifacts.has(name) ? errors.get(`artifacts.${name}`) : undefined;
  return html`<${Section} title="Input artifacts">
    <div class="fields">
      ${artifacts.map(
        (/** @type {ArtifactInfo} */ each) => html`<${ArtifactField} key=${each.name} artifact=${each}
        text=${draft.artifacts.get(each.name)} error=${errorOf(each.name)} onChange=${onChange} />`,
      )}
    </div>
  <//>`;
}
