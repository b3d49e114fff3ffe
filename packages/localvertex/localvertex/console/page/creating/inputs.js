// The fields of parameters and input artifacts: a control for each type, "changed", and reset to the default.
import { html, Select } from "../ui/ui.js";
import { Field } from "./field.js";

/** Each type as it is shown, and as a message shows it in place of the name of kfp's type. */
const TYPES = /** @type {Record<string, [string, string]>} */ ({
  STRING: ["text", "text"],
  NUMBER_INTEGER: ["integer", "an integer"],
  NUMBER_DOUBLE: ["number", "a number"],
  BOOLEAN: ["true or false", "true or false"],
  LIST: ["JSON list", "a JSON list"],
  STRUCT: ["JSON object", "a JSON object"],
});

/** @typedef {(text: string) => void} OnText */

/**
 * @param {{parameter: ParameterInfo, text: string | undefined, error: string | undefined,
 *   onChange: (change: any) => void}} props - `text` is undefined while the default holds.
 */
export function ParameterField({ parameter, text, error, onChange }) {
  const { name, type, description, default: standard, is_required: isRequired } = parameter;
  const isChanged = text !== undefined && text !== standard;
  const set = (/** @type {string} */ value) => {
    const isReset = value === standard || (value === "" && standard === null);
    onChange({ part: "parameters", name, text: isReset ? null : value });
  };
  const [shown, expected] = TYPES[type] ?? [type, type];
  const problem = error?.replace(`expected ${type}`, `expected ${expected}`);
  const tags = html`<span class="field-tag">${shown}</span>
    ${isRequired && html`<span class="field-tag required">required</span>`}
    ${isChanged && html`<span class="field-tag changed">changed</span>`}`;
  const reset =
    isChanged &&
    standard !== null &&
    html`<p class="small reset">
    <button type="button" class="quiet" onClick=${() => set(standard)}>Reset to default</button>
    <span class="muted">${standard === "" ? "empty" : standard}</span>
  </p>`;
  const control = (/** @type {object} */ aria) =>
    html`<${Control} aria=${aria} parameter=${parameter} text=${text ?? standard ?? ""} onText=${set} />`;
  const id = `parameter-${name}`;
  return html`<${Field} id=${id} name=${name} hint=${description} error=${problem} tags=${tags} after=${reset}>
    ${control}
  <//>`;
}

/** @param {{aria: object, parameter: ParameterInfo, text: string, onText: OnText}} props */
function Control({ aria, parameter, text, onText }) {
  const { type, literals, is_required: isRequired, default: standard, example } = parameter;
  const input = (/** @type {any} */ event) => onText(event.target.value);
  const choices = literals.length ? literals : type === "BOOLEAN" ? ["true", "false"] : [];
  if (choices.length) {
    const none = standard === null && !choices.includes("") ? [""] : [];
    const unset = standard === null ? "not set" : "empty";
    const more = [...none, ...choices].includes(text) ? [] : [text];
    const offered = [...none, ...more, ...choices].map((each) => [each, each || unset]);
    return html`<${Select} ...${aria} value=${text} choices=${offered} onChoose=${onText} />`;
  }
  const empty = standard === null ? (isRequired && example ? `such as ${example}` : "not set") : "empty";
  if (type === "LIST" || type === "STRUCT" || text.includes("\n")) {
    const rows = Math.min(12, Math.max(2, text.split("\n").length, Math.ceil(text.length / 48)));
    return html`<textarea ...${aria} rows=${rows} value=${text} placeholder=${empty} spellcheck=${false}
      onInput=${input}></textarea>`;
  }
  const mode = type.startsWith("NUMBER") ? "decimal" : "text";
  return html`<input ...${aria} value=${text} placeholder=${empty} inputmode=${mode} spellcheck=${false}
    autocomplete="off" onInput=${input} />`;
}

/**
 * @param {{artifact: ArtifactInfo, text: string | undefined, error: string | undefined,
 *   onChange: (change: any) => void}} props
 */
export function ArtifactField({ artifact, text = "", error, onChange }) {
  const { name, schema, is_required: isRequired } = artifact;
  const set = (/** @type {any} */ event) => onChange({ part: "artifacts", name, text: event.target.value || null });
  const tags = html`<span class="field-tag">${schema}</span>
    ${isRequired && html`<span class="field-tag required">required</span>`}`;
  const hint = "A file or folder on this machine, or the ID of an artifact.";
  return html`<${Field} id=${`artifact-${name}`} name=${name} hint=${hint} error=${error} tags=${tags}>
    ${(/** @type {object} */ aria) =>
      html`<input ...${aria} value=${text} spellcheck=${false} placeholder="path or ID" onInput=${set} />`}
  <//>`;
}
