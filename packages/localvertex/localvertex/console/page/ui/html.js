// Preact with htm: what all parts and views import.
import htm from "../vendor/htm.js";
import { createElement } from "../vendor/preact.js";

export * from "../vendor/hooks.js";
export { Fragment, render } from "../vendor/preact.js";

/**
 * Markup with values in it; every value is text, never markup.
 * @type {(strings: TemplateStringsArray, ...values: Part[]) => any}
 */
export const html = htm.bind(createElement);
