// A choice of one value.
import { html } from "./html.js";

/**
 * All other properties become attributes of the element.
 * @param {{value: string, choices: (string | string[])[], onChoose: (value: string) => void, [attribute: string]: any}}
 *   props - A choice is a value, which may have another title.
 */
export function Select({ value, choices, onChoose, ...attributes }) {
  const choose = (/** @type {any} */ event) => onChoose(event.target.value);
  return html`<select ...${attributes} value=${value} onChange=${choose}>
    ${choices.map((choice) => {
      const [each, title = each] = [choice].flat();
      return html`<option key=${each} value=${each} selected=${each === value}>${title}</option>`;
    })}
  </select>`;
}
