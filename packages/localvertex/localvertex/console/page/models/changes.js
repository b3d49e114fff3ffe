// Changes of a version through Vertex AI's own methods: its aliases, and its deletion.
import { post, remove, vertex } from "../server/api.js";
import { useAction } from "../server/load.js";
import { Confirm, Dialog, html, Problem, useState } from "../ui/ui.js";

const USUAL = ["champion", "default"];

const FIXED = "default";

/** @param {any} model */
const resource = (model) => vertex(`models/${encodeURIComponent(model.id)}@${encodeURIComponent(model.version)}`);

/** @param {{model: any, onChange: () => void, onClose: () => void}} props */
export function EditAliases({ model, onChange, onClose }) {
  const [name, setName] = useState("");
  const [merge, { isBusy, error }] = useAction(async (/** @type {string} */ alias) => {
    await post(`${resource(model)}:mergeVersionAliases`, { versionAliases: [alias] });
    setName((now) => (now === alias ? "" : now));
    onChange();
  });
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    merge(name);
  };
  const missing = USUAL.filter((each) => !model.aliases.includes(each));
  return html`<${Dialog} title=${`Aliases of version ${model.version}`} onClose=${onClose}>
    <p>An alias belongs to one version. If another version has it, it moves to this one.</p>
    <ul class="entries" aria-live="polite">
      ${model.aliases.map(
        (/** @type {string} */ each) => html`<li key=${each}>
          <span class="alias">${each}</span>
          ${
            each === FIXED
              ? html` <span class="muted small">can only be moved to another version</span>`
              : html`<button class="quiet" disabled=${isBusy} onClick=${() => merge(`-${each}`)}
                  aria-label=${`Remove ${each}`}>Remove</button>`
          }
        </li>`,
      )}
    </ul>
    <div class="actions">
      ${missing.map(
        (each) => html`<button key=${each} disabled=${isBusy} onClick=${() => merge(each)}>
          Make ${each}${holder(model, each)}
        </button>`,
      )}
    </div>
    <form class="actions" onSubmit=${add}>
      <label for="alias">Another alias</label>
      <input id="alias" value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} />
      <button disabled=${isBusy || !name}>Set</button>
    </form>
    ${error && html`<${Problem} error=${error} />`}
  <//>`;
}

/** Which version has an alias now. @param {any} model @param {string} alias */
function holder(model, alias) {
  const row = model.versions.find((/** @type {any} */ each) => each.aliases.includes(alias));
  return row ? ` (now version ${row.version})` : "";
}

/** @param {{model: any, onDelete: (isModelLeft: boolean) => void, onClose: () => void}} props */
export function DeleteVersion({ model, onDelete, onClose }) {
  const isOnly = model.versions.length === 1;
  const erase = async () => {
    await remove(isOnly ? vertex(`models/${encodeURIComponent(model.id)}`) : `${resource(model)}:deleteVersion`);
    onDelete(!isOnly);
  };
  return html`<${Confirm}
      title=${isOnly ? `Delete the model ${model.display_name}?` : `Delete version ${model.version}?`}
      action=${isOnly ? "Delete model" : "Delete version"} onConfirm=${erase} onClose=${onClose}>
    <p>${
      isOnly
        ? "It is the only version, so the model is deleted with it."
        : `Version ${model.version} of ${model.display_name} is deleted with its evaluations
          and the registry's copy of its files.`
    } This cannot be undone.</p>
  <//>`;
}
