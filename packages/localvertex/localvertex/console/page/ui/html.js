// Preact with htm: what all parts and views import.
import htm from "../vendor/htm.js";
import { createElement } from "../vendor/preact.js";

export * from "../vendor/hooks.js";
export { Fragment, render } from "../vendor/preact.js";

// biome-ignore lint/suspicious/noControlCharactersInRegex: they would hide or reorder what follows.
const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Return a text with escapes for the characters that would hide or reorder what follows. @param {string} text */
export const visible = (text) =>
  text.replace(INVISIBLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Texts below an element as they are shown; all else as it is. @type {(child: any) => any} */
const shown = (child) => {
  if (Array.isArray(child)) return child.map(shown);
  return typeof child === "string" ? visible(child) : child;
};

/** @param {any} type @param {any} props @param {any[]} children */
const element = (type, props, ...children) => createElement(type, props, ...children.map(shown));

/**
 * Markup with values in it; every value is text, never markup.
 * @type {(strings: TemplateStringsArray, ...values: Part[]) => any}
 */
export const html = htm.bind(element);
