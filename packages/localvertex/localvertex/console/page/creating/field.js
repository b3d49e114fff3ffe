// One field of a form: its name and description, its control, and what is wrong with it.
import { html, LongText } from "../ui/ui.js";

/**
 * @typedef {object} FieldProps
 * @property {string} id
 * @property {string} name
 * @property {string} [hint] - What it is for.
 * @property {string} [error] - What is wrong.
 * @property {any} [tags] - Shown beside the name.
 * @property {any} [after] - Shown below the control.
 * @property {(aria: object) => any} children - Makes the control, with the attributes that name and describe it.
 */

/** @param {FieldProps} props */
export function Field({ id, name, hint = "", error = "", tags, after, children }) {
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  const aria = { id, "aria-invalid": error ? "true" : undefined, "aria-describedby": described || undefined };
  return html`<div class="field ${error ? "wrong" : ""}">
    <div class="field-name">
      <label for=${id}>${name}</label>${tags}
      ${hint && html`<${LongText} id=${`${id}-hint`} look="muted small" text=${hint}>${withCode(hint)}<//>`}
    </div>
    <div class="field-control">
      ${children(aria)}
      ${error && html`<p id=${`${id}-error`} class="error small">${error}</p>`}
      ${after}
    </div>
  </div>`;
}

/** A description in which backquotes enclose code, as in Markdown. @param {string} text */
const withCode = (text) =>
  text.split(/`([^`]+)`/).map((part, index) => (index % 2 ? html`<code key=${index}>${part}</code>` : part));
