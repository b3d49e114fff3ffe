// Dialogs: the browser's own, which keeps the focus inside and closes with Escape.

import { useAction } from "../server/load.js";
import { html, useLayoutEffect, useRef } from "./html.js";
import { Problem } from "./problem.js";

/**
 * A dialog, open while it is rendered.
 * @param {{title: string, onClose: () => void, actions?: any, children?: any}} props
 */
export function Dialog({ title, onClose, actions, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // Only a dialog that is closed gives the focus back.
    return () => dialog?.close();
  }, []);
  const leave = (/** @type {MouseEvent} */ event) => event.target === element.current && onClose();
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${element} aria-labelledby="dialog-title"
      onCancel=${cancel} onClick=${leave}>
    <div class="dialog">
      <h2 id="dialog-title">${title}</h2>
      <div class="content">${children}</div>
      <div class="actions">${actions ?? html`<button onClick=${onClose}>Close</button>`}</div>
    </div>
  </dialog>`;
}

/**
 * Ask before something happens that cannot be undone.
 * @param {{title: string, action: string, onConfirm: () => Promise<any>, onClose: () => void, isDangerous?: boolean,
 *   children?: any}} props - `action` is the verb on the button. The dialog closes when `onConfirm` has worked.
 */
export function Confirm({ title, action, onConfirm, onClose, isDangerous = true, children }) {
  const [run, { isBusy, error }] = useAction(async () => {
    await onConfirm();
    onClose();
  });
  const look = isDangerous ? "danger" : "primary";
  const actions = html`
    <button aria-disabled=${isBusy} onClick=${() => isBusy || onClose()}>Cancel</button>
    <button class=${look} aria-disabled=${isBusy} onClick=${() => run()}>${action}</button>`;
  return html`<${Dialog} title=${title} onClose=${() => isBusy || onClose()} actions=${actions}>
    ${children}
    ${error && html`<${Problem} error=${error} />`}
  <//>`;
}
