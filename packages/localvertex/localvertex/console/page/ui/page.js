// The outline of a view: its title with actions, and what is shown while there is nothing else.
import { html, useEffect } from "./html.js";

/**
 * A view. Its title is also that of the browser's tab.
 * @param {{title: string, heading?: any, parent?: {title: string, href: string}, actions?: any, children?: any}} props
 *   `heading` is what is shown in place of the title's text; `parent` is the view above this one.
 */
export function Page({ title, heading, parent, actions, children }) {
  useEffect(() => {
    document.title = `${title} · localvertex`;
  }, [title]);
  return html`
    <header class="page">
      <div>
        ${parent && html`<a class="parent" href=${parent.href}>${parent.title}</a>`}
        <h1>${heading ?? title}</h1>
      </div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}`;
}

/** A part of a view below a heading. @param {{title: string, actions?: any, children?: any}} props */
export function Section({ title, actions, children }) {
  return html`<section class="section">
    <header><h2>${title}</h2>${actions && html`<div class="actions">${actions}</div>`}</header>
    ${children}
  </section>`;
}

/** Shown until the first answer is here. */
export function Loading() {
  return html`<p class="loading" role="status"><span class="spinner" aria-hidden="true"></span>Loading…</p>`;
}

/** Shown in place of an empty list. @param {{title: string, children?: any}} props */
export function Empty({ title, children }) {
  return html`<div class="empty"><p>${title}</p>${children}</div>`;
}

/**
 * A file of a run in a frame of an origin of its own.
 * @param {{src: string, title: string, hasScripts?: boolean}} props - Only run.html has scripts.
 */
export function Frame({ src, title, hasScripts = false }) {
  return html`<iframe class="frame" src=${src} title=${title} sandbox=${hasScripts ? "allow-scripts" : ""}></iframe>`;
}

/**
 * A text from a file, which scrolls if it is long.
 * @param {{text: string, look: string, id?: string, children?: any}} props
 */
export function LongText({ text, look, id, children = text }) {
  const isLong = text.length > 500 || text.split("\n", 11).length > 10;
  return html`<p id=${id} class="long-text ${look}" tabindex=${isLong ? 0 : undefined}>${children}</p>`;
}
