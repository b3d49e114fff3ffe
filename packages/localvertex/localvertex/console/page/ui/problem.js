// What went wrong, and what a user should know.
import { html } from "./html.js";

/**
 * An error, announced by screen readers.
 * @param {{title?: string, error: Error | string, onRetry?: () => void}} props
 */
export function Problem({ title = "Request failed", error, onRetry }) {
  const text = typeof error === "string" ? error : error.message;
  return html`<div class="notice bad" role="alert">
    <strong>${title}</strong>
    <p>${text}</p>
    ${onRetry && html`<button onClick=${onRetry}>Try again</button>`}
  </div>`;
}

/**
 * A remark that is not an error.
 * @param {{kind?: "info" | "warn", title?: string, children?: any}} props
 */
export function Notice({ kind = "info", title, children }) {
  return html`<div class="notice ${kind}">${title && html`<strong>${title}</strong>`}<div>${children}</div></div>`;
}
