// The fields of a form: the name and description of each, its control, what is wrong with it, and reset to the default.
import { html, Input, LongText, Section, Select, TextArea, useState } from "../ui/ui.js";

/** Each type as it is shown, and as a message shows it in place of the name of kfp's type. */
const TYPES = /** @type {Record<string, [string, string]>} */ ({
  STRING: ["text", "text"],
  NUMBER_INTEGER: ["integer", "an integer"],
  NUMBER_DOUBLE: ["number", "a number"],
  BOOLEAN: ["true or false", "true or false"],
  LIST: ["JSON list", "a JSON list"],
  STRUCT: ["JSON object", "a JSON object"],
});

/** The choice that makes a field of text out of a list; no value has a line break at its end. */
const OTHER = "other\n";

const AFTER_FAILURE = [
  ["false", "run the steps that do not depend on it"],
  ["true", "start no more steps"],
];

const CACHE = [
  ["true", "as set in the pipeline"],
  ["false", "run every step"],
];

/** @param {FieldProps & Record<string, any>} props */
export function Field({ id, name, hint = "", error = "", tags, after, as = Input, ...attributes }) {
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  // Backquotes enclose code in a description, as in Markdown.
  const parts = hint.split(/`([^`]+)`/);
  return html`<div class="field ${error ? "wrong" : ""}">
    <div class="field-name">
      <label for=${id}>${name}</label>${tags}
      ${
        hint &&
        html`<${LongText} id=${`${id}-hint`} look="muted small" text=${hint}>
          ${parts.map((part, index) => (index % 2 ? html`<code key=${index}>${part}</code>` : part))}<//>`
      }
    </div>
    <div class="field-control">
      <${as} ...${attributes} id=${id} aria-invalid=${error ? "true" : undefined}
        aria-describedby=${described || undefined} />
      ${error && html`<p id=${`${id}-error`} class="error small">${error}</p>`}
      ${after}
    </div>
  </div>`;
}

const REQUIRED = html`<span class="field-tag required">required</span>`;

/** @param {ParameterFieldProps} props */
export function ParameterField({ parameter, text, error, onChange }) {
  const { name, type, description, default: standard, is_required: isRequired } = parameter;
  const [isOther, setIsOther] = useState(false);
  const isChanged = text !== undefined && text !== standard;
  const set = (/** @type {string} */ value) => {
    const isReset = value === standard || (value === "" && standard === null);
    onChange({ part: "parameters", name, text: isReset ? null : value });
  };
  const [shown, expected] = TYPES[type] ?? [type, type];
  const tags = html`<span class="field-tag">${shown}</span>
    ${isRequired && REQUIRED}
    ${isChanged && html`<span class="field-tag changed">changed</span>`}`;
  const reset =
    isChanged &&
    standard !== null &&
    html`<p class="small reset">
    <button type="button" class="quiet" onClick=${() => set(standard)}>Reset to default</button>
    <span class="muted">${standard === "" ? "empty" : standard}</span>
  </p>`;
  return html`<${Field} id=${`parameter-${name}`} name=${name} hint=${description} tags=${tags} after=${reset}
    error=${error?.replace(`expected ${type}`, `expected ${expected}`)}
    ...${control(parameter, text ?? standard ?? "", isOther)}
    onText=${(/** @type {string} */ value) => (value === OTHER ? setIsOther(true) : set(value))} />`;
}

/**
 * The control of a type.
 * @param {ParameterInfo} parameter
 * @param {string} value
 * @param {boolean} isOther - Whether it takes any text in place of the documented values.
 */
function control({ type, literals, documented, is_required: isRequired, default: standard, example }, value, isOther) {
  if (documented.length && !isOther) {
    const choices = documented.includes(value) ? documented : [value, ...documented];
    return { as: Select, value, choices: [...choices, [OTHER, "another value…"]] };
  }
  const choices = literals.length ? literals : type === "BOOLEAN" ? ["true", "false"] : [];
  const empty = standard === null ? "not set" : "empty";
  if (choices.length) {
    const none = standard === null && !choices.includes("") ? [""] : [];
    const more = [...none, ...choices].includes(value) ? [] : [value];
    return { as: Select, value, choices: [...none, ...more, ...choices].map((each) => [each, each || empty]) };
  }
  const placeholder = standard === null && isRequired && example ? `such as ${example}` : empty;
  const common = { value, placeholder, spellcheck: false };
  if (type === "LIST" || type === "STRUCT" || value.includes("\n")) {
    const rows = Math.min(12, Math.max(2, value.split("\n").length, Math.ceil(value.length / 48)));
    return { as: TextArea, rows, ...common };
  }
  return { ...common, inputmode: type.startsWith("NUMBER") ? "decimal" : "text", autocomplete: "off" };
}

/**
 * The settings of a run besides its values: name, labels, what happens after a failure, and the cache.
 * @param {SettingsProps} props
 */
export function Settings({ draft, errors, onChange }) {
  const { display_name, labels, fail_fast, use_cache } = draft.settings;
  const write = (/** @type {string} */ name) => (/** @type {any} */ text) => onChange({ part: "settings", name, text });
  const choose = (/** @type {string} */ name) => (/** @type {string} */ text) => write(name)(text === "true");
  return html`<${Section} title="Run settings">
    <div class="fields">
      <${Field} id="display-name" name="Display name" hint="Shown in the list of runs."
        error=${errors.get("display_name")} value=${display_name} placeholder="the ID of the run"
        onText=${write("display_name")} />
      <${Field} id="labels" name="Labels" error=${errors.get("labels")} hint="One per line: name=value."
        as=${TextArea} rows="2" value=${labels} onText=${write("labels")} />
      <${Field} id="failure-policy" name="After a failed step" hint="Running steps finish in both cases."
        as=${Select} value=${`${fail_fast}`} choices=${AFTER_FAILURE} onText=${choose("fail_fast")} />
      <${Field} id="cache" name="Cached results" hint="A step with the same inputs as before is not run again."
        as=${Select} value=${`${use_cache}`} choices=${CACHE} onText=${choose("use_cache")} />
    </div>
  <//>`;
}
