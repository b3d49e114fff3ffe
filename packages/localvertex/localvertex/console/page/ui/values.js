// Values of records as text: names with values, JSON, and text that can be copied.

import { isValidElement } from "../vendor/preact.js";
import { Fragment, html, useEffect, useState } from "./html.js";
import { NONE, plural } from "./text.js";

/** Characters up to which JSON is shown as one line. */
const SHORT = 80;

/** Characters from which JSON text is shown as it is. */
const LONG = 100_000;

/** A name that breaks after `_` and `/` if it is too long. @param {{text: string}} props */
export function Name({ text }) {
  const parts = text.split(/(?<=[_/])/);
  return html`<bdi>${parts.map((part, index) => html`<${Fragment} key=${index}>${part}<wbr /><//>`)}</bdi>`;
}

/** Names with their values, in the order given; a name may be markup. @param {ValuesProps} props */
export function Values({ values, look = "" }) {
  const pairs = Array.isArray(values) ? values : Object.entries(values ?? {});
  return html`<dl class=${look || "values"}>
    ${pairs.map(
      ([name, value], index) => html`<div key=${index}>
        <dt>${typeof name === "string" ? html`<${Name} text=${name} />` : name}</dt><dd><${Value} value=${value} /></dd>
      </div>`,
    )}
  </dl>`;
}

/** Short facts beside each other; those without a value are left out. @param {FactsProps} props */
export const Facts = ({ facts, look = "" }) =>
  html`<${Values} look=${`facts ${look}`} values=${facts.filter(([, value]) => value)} />`;

/**
 * One value: markup of this page as it is, lists and objects as JSON, all others as text; long JSON text is folded.
 * @param {{value: any}} props
 */
export function Value({ value }) {
  if (value === null || value === undefined || value === "") return NONE;
  if (isValidElement(value)) return value;
  if (typeof value !== "object") {
    const isLong = typeof value === "string" && value.length > SHORT;
    const text = isLong && indented(value);
    return text ? folded("Show JSON", text) : html`<span class="value">${String(value)}</span>`;
  }
  const short = JSON.stringify(value);
  if (short.length <= SHORT) return html`<code>${short}</code>`;
  const title = plural(Object.keys(value).length, Array.isArray(value) ? "item" : "field");
  return folded(title, JSON.stringify(value, null, 2));
}

/** @param {string} title @param {string} text */
const folded = (title, text) => html`<details class="json"><summary>${title}</summary><pre>${text}</pre></details>`;

/**
 * Text that is a JSON list or object, with its lines, or as it is where that would change a value, e.g. a long number;
 * empty for other text.
 * @param {string} text
 */
function indented(text) {
  if (!/^\s*[[{]/.test(text)) return "";
  try {
    const found = JSON.parse(text);
    const isSame = text.length < LONG && JSON.stringify(found) === text.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
    return isSame ? JSON.stringify(found, null, 2) : text;
  } catch {
    return "";
  }
}

/** Text with a button that copies it; no line breaks within the name of an option. @param {{text: string}} props */
export function Code({ text }) {
  const parts = text.split(/((?<=^|\s)--[\w-]{1,40})/);
  const shown = parts.map((part, index) => (index % 2 ? html`<span key=${index} class="nowrap">${part}</span>` : part));
  return html`<div class="code"><pre tabindex="0">${shown}</pre><${Copy} text=${text} /></div>`;
}

/** @param {CopyProps} props */
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
