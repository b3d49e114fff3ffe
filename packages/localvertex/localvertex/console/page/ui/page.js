// The outline of a view: its title with actions, its sections, what is shown in place of data, and what went wrong.
import { html, useEffect } from "./html.js";
import { State } from "./state.js";

/** A view. Its title is also the title of the browser's tab. @param {PageProps} props */
export function Page({ title, heading = html`<bdi>${title}</bdi>`, state, parent, actions, children }) {
  useEffect(() => {
    document.title = `${title} · localvertex`;
  }, [title]);
  return html`
    <header class="page">
      <div>
        ${parent && html`<a class="parent" href=${parent[1]}>${parent[0]}</a>`}
        <h1>${heading}${state && html` <${State} state=${state} />`}</h1>
      </div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}`;
}

/** A part of a view below a heading. @param {SectionProps} props */
export function Section({ title, actions, children }) {
  return html`<section class="section">
    <header><h2>${title}</h2>${actions && html`<div class="actions">${actions}</div>`}</header>
    ${children}
  </section>`;
}

/**
 * What was read, as soon as it is there, and why it could not be read again: the result of `useLoad`.
 * @param {LoadedProps} props
 */
export function Loaded({ title, data, error, reload, children }) {
  return html`
    ${error && html`<${Problem} title=${title} error=${error} onRetry=${reload} />`}
    ${
      !data &&
      !error &&
      html`<p class="loading" role="status"><span class="spinner" aria-hidden="true"></span>Loading…</p>`
    }
    ${data && children?.(data)}`;
}

/** Shown in place of an empty list. @param {EmptyProps} props */
export function Empty({ title, children }) {
  return html`<div class="empty"><p>${title}</p>${children}</div>`;
}

/** An error, announced by screen readers. @param {ProblemProps} props */
export function Problem({ title = "Request failed", error, onRetry }) {
  return html`<div class="notice bad" role="alert">
    <strong>${title}</strong>
    <p>${typeof error === "string" ? error : error.message}</p>
    ${onRetry && html`<button onClick=${onRetry}>Try again</button>`}
  </div>`;
}

/** A remark that is not an error. @param {NoticeProps} props */
export function Notice({ kind = "info", title, children }) {
  return html`<div class="notice ${kind}">${title && html`<strong>${title}</strong>`}<div>${children}</div></div>`;
}

/** A page of a step, without scripts and in an origin of its own. @param {FrameProps} props */
export const Frame = ({ src, title }) => html`<iframe class="frame" src=${src} title=${title} sandbox=""></iframe>`;

/** A text from a file, which scrolls if it is long. @param {LongTextProps} props */
export function LongText({ text, look, id, children = text }) {
  const isLong = text.length > 500 || text.split("\n", 11).length > 10;
  return html`<p id=${id} class="long-text ${look}" tabindex=${isLong ? 0 : undefined}>${children}</p>`;
}
