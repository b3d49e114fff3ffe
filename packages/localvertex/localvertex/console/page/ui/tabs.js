// Tabs: one of several panels, chosen by click or by the arrow keys.
import { html } from "./html.js";

/**
 * @typedef {object} Tab
 * @property {string} id
 * @property {string} title
 * @property {number} [count] - Shown beside the title.
 */

/**
 * @param {{label: string, tabs: Tab[], selected: string, onSelect: (id: string) => void, children?: any}} props
 *   `children` is the panel of the selected tab.
 */
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
