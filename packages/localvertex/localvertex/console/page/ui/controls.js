// What a user acts with: fields, tabs, dialogs, and files that are dropped. Other properties become attributes.

import { useAction } from "../server/server.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { Problem } from "./page.js";

/** @param {InputProps} props */
export const Input = ({ onText, ...attributes }) =>
  html`<input ...${attributes} onInput=${(event) => onText(event.target.value)} />`;

/** @param {TextAreaProps} props */
export const TextArea = ({ onText, ...attributes }) =>
  html`<textarea ...${attributes} onInput=${(event) => onText(event.target.value)}></textarea>`;

/** A choice of one value, which may have another title. @param {SelectProps} props */
export function Select({ value, choices, onText, ...attributes }) {
  return html`<select ...${attributes} value=${value} onChange=${(event) => onText(event.target.value)}>
    ${choices.map((choice) => {
      const [each, title = each] = [choice].flat();
      return html`<option key=${each} value=${each} selected=${each === value}>${title}</option>`;
    })}
  </select>`;
}

/** @param {CheckProps} props */
export const Check = ({ title, isOn, onTurn }) => html`<label class="check">
  <input type="checkbox" checked=${isOn} onChange=${(event) => onTurn(event.target.checked)} />${title}</label>`;

/** Tabs: one of several panels, chosen by click or by the arrow keys. @param {TabsProps} props */
export function Tabs({ label, tabs, selected, onSelect, children }) {
  const tabOf = (/** @type {string} */ id) => `${label}-${id}`.replace(/\W+/g, "-");
  const panel = `${tabOf(selected)}-panel`;
  /** @param {KeyboardEvent} event */
  const move = (event) => {
    const index = tabs.findIndex((each) => each.id === selected);
    const next = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const { id } = tabs[(next + tabs.length) % tabs.length];
    onSelect(id);
    document.getElementById(tabOf(id))?.focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
      ${tabs.map(({ id, title, count }) => {
        const isSelected = id === selected;
        return html`<button key=${id} id=${tabOf(id)} role="tab" aria-selected=${isSelected}
            aria-controls=${isSelected ? panel : undefined} tabindex=${isSelected ? 0 : -1}
            onClick=${() => onSelect(id)}>
          ${title}${count !== undefined && html`<span class="count">${count}</span>`}
        </button>`;
      })}
    </div>
    <div id=${panel} role="tabpanel" aria-labelledby=${tabOf(selected)}>${children}</div>`;
}

/**
 * A dialog, open while it is rendered: the browser's own, which keeps the focus inside and closes with Escape.
 * @param {DialogProps} props
 */
export function Dialog({ title, onClose, actions, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // Only a dialog that is closed gives the focus back.
    return () => dialog?.close();
  }, []);
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${element} aria-labelledby="dialog-title" onCancel=${cancel}
      onClick=${(event) => event.target === element.current && onClose()}>
    <div class="dialog">
      <h2 id="dialog-title">${title}</h2>
      <div class="content">${children}</div>
      <div class="actions">${actions ?? html`<button onClick=${onClose}>Close</button>`}</div>
    </div>
  </dialog>`;
}

/** Ask before something happens that cannot be undone. @param {ConfirmProps} props */
export function Confirm({ title, action, onConfirm, onClose, isDangerous = true, children }) {
  const [run, { isBusy, error }] = useAction(async () => {
    await onConfirm();
    onClose();
  });
  const leave = () => isBusy || onClose();
  const actions = html`
    <button aria-disabled=${isBusy} onClick=${leave}>Cancel</button>
    <button class=${isDangerous ? "danger" : "primary"} aria-disabled=${isBusy} onClick=${() => run()}>
      ${action}</button>`;
  return html`<${Dialog} title=${title} onClose=${leave} actions=${actions}>
    ${children}
    ${error && html`<${Problem} error=${error} />`}
  <//>`;
}

/** A button that opens a dialog. @param {AskingProps} props */
export function Asking({ verb, dialog, of, ...attributes }) {
  const [isOpen, setIsOpen] = useState(false);
  return html`<button ...${attributes} onClick=${() => setIsOpen(true)}>${verb}</button>
    ${isOpen && html`<${dialog} ...${of} onClose=${() => setIsOpen(false)} />`}`;
}

const DRAGS = /** @type {const} */ (["dragover", "dragleave", "drop"]);

/**
 * Take files that are dropped anywhere on the page; the browser would leave the page for such a file.
 * @param {(files: FileList) => void} onFiles
 * @returns {boolean} Whether files are dragged over the page.
 */
export function useFileDrop(onFiles) {
  const [isOver, setIsOver] = useState(false);
  const newest = useRef(onFiles);
  newest.current = onFiles;
  useEffect(() => {
    /** @param {DragEvent} event */
    const listen = (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setIsOver(event.type === "dragover");
      if (event.type === "drop") newest.current(event.dataTransfer.files);
    };
    for (const type of DRAGS) addEventListener(type, listen);
    return () => {
      for (const type of DRAGS) removeEventListener(type, listen);
    };
  }, []);
  return isOver;
}

/** Where files are dropped, with a button that chooses one; the whole page takes them. @param {DropZoneProps} props */
export function DropZone({ action, look = "", onFiles, children, ...attributes }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const isOver = useFileDrop((files) => attributes.disabled || onFiles(files));
  const take = (/** @type {any} */ event) => {
    onFiles(event.target.files);
    event.target.value = "";
  };
  return html`<div class="drop ${isOver ? "over" : ""}">
    ${children}
    <input ...${attributes} class="hidden" type="file" ref=${input} tabindex="-1" onChange=${take} />
    <button class=${look} disabled=${attributes.disabled} onClick=${() => input.current?.click()}>${action}</button>
  </div>`;
}
