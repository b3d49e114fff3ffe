// Values of records as text: names with values, JSON, and text that can be copied.

import { isValidElement } from "../vendor/preact.js";
import { Fragment, html, useEffect, useState } from "./html.js";

/** Characters up to which JSON is shown as one line. */
const SHORT = 80;

/** Characters from which JSON text is shown as it is. */
const LONG = 100_000;

/** A name that breaks after `_` and `/` if it is too long. @param {{text: string}} props */
export function Name({ text }) {
  const parts = text.split(/(?<=[_/])/);
  return html`<bdi>${parts.map((part, index) => html`<${Fragment} key=${index}>${part}<wbr /><//>`)}</bdi>`;
}

/** Names with their values, in the order given. @param {{values: Record<string, any> | [string, any][]}} props */
export function Values({ values }) {
  const pairs = Array.isArray(values) ? values : Object.entries(values ?? {});
  return html`<dl class="values">
    ${pairs.map(
      ([name, value]) =>
        html`<div key=${name}><dt><${Name} text=${name} /></dt><dd><${Value} value=${value} /></dd></div>`,
    )}
  </dl>`;
}

/**
 * One value: markup of this page as it is, lists and objects as JSON, all others as text; long JSON text is folded.
 * @param {{value: any}} props
 */
export function Value({ value }) {
  if (value === null || value === undefined || value === "") return html`<span class="muted">–</span>`;
  if (isValidElement(value)) return value;
  if (typeof value === "object") return html`<${Json} value=${value} />`;
  if (isJson(value)) return html`<${Folded} title="Show JSON" text=${indented(value)} />`;
  return html`<span class="value">${String(value)}</span>`;
}

/** JSON with its lines; folded when it is long. @param {{value: any}} props */
function Json({ value }) {
  const short = JSON.stringify(value);
  if (short.length <= SHORT) return html`<code>${short}</code>`;
  const count = Array.isArray(value) ? `${value.length} items` : `${Object.keys(value).length} fields`;
  return html`<${Folded} title=${count} text=${JSON.stringify(value, null, 2)} />`;
}

/** Text of several lines below its title. @param {{title: string, text: string}} props */
const Folded = ({ title, text }) => html`<details class="json">
  <summary>${title}</summary>
  <pre>${text}</pre>
</details>`;

/** Whether a value is long text that is a list or an object. @param {any} value */
function isJson(value) {
  if (typeof value !== "string" || value.length <= SHORT || !/^\s*[[{]/.test(value)) return false;
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
}

/** JSON text with its lines, or as it is where that would change a value, e.g. a long number. @param {string} text */
function indented(text) {
  const found = JSON.parse(text);
  const isSame = text.length < LONG && JSON.stringify(found) === text.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
  return isSame ? JSON.stringify(found, null, 2) : text;
}

/** Text with a button that copies it; no line breaks within the name of an option. @param {{text: string}} props */
export function Code({ text }) {
  const parts = text.split(/((?<=^|\s)--[\w-]{1,40})/);
  const shown = parts.map((part, index) => (index % 2 ? html`<span key=${index} class="nowrap">${part}</span>` : part));
  return html`<div class="code"><pre tabindex="0">${shown}</pre><${Copy} text=${text} /></div>`;
}

/** A button that copies text. @param {{text: string, title?: string}} props */
export function Copy({ text, title = "Copy" }) {
  const [done, setDone] = useState("");
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(""), 2000);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setDone("Copied"),
      () => setDone("Not copied"),
    );
  return html`<button class="copy" onClick=${copy}><span aria-live="polite">${done || title}</span></button>`;
}
