// A table of rows, which may be selected.
import { html } from "./html.js";

/**
 * @typedef {object} Column
 * @property {string} title - The heading.
 * @property {any} [heading] - What is shown in place of the title.
 * @property {(row: any) => any} cell - The content of a cell.
 * @property {boolean} [isNumber] - Aligned to the right.
 * @property {boolean} [isWideOnly] - Left out on narrow screens.
 * @property {boolean} [isName] - The heading of the row.
 */

/**
 * @param {object} props
 * @param {string} props.caption - What the table contains, for screen readers.
 * @param {Column[]} props.columns
 * @param {any[]} props.rows
 * @param {(row: any, index: number) => string} [props.keyOf] - By default the `id` of a row, or its place.
 * @param {Set<string>} [props.selected] - The keys of the selected rows; without it rows cannot be selected.
 * @param {(key: string, isSelected: boolean) => void} [props.onSelect]
 * @param {boolean} [props.isRegion] - Whether the keyboard can scroll it: a table without links that may be too wide.
 * @param {(row: any) => string} [props.nameOf] - What a row is called for screen readers, where rows can be selected.
 */
export function Table({ caption, columns, rows, keyOf = idOf, selected, onSelect, isRegion, nameOf = titleOf }) {
  const region = isRegion && { tabindex: 0, role: "region", "aria-label": caption };
  return html`<div class="table" ...${region}>
    <table>
      <caption class="hidden">${caption}</caption>
      <thead>
        <tr>
          ${selected && html`<th class="select"><span class="hidden">Select</span></th>`}
          ${columns.map(
            (each) => html`<th key=${each.title} scope="col" class=${classOf(each)}>${each.heading ?? each.title}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map((row, index) => {
          const key = keyOf(row, index);
          const isSelected = Boolean(selected?.has(key));
          const select = (/** @type {any} */ event) => onSelect?.(key, event.target.checked);
          return html`<tr key=${key} class=${isSelected ? "selected" : ""}>
            ${
              selected &&
              html`<td class="select">
                <input type="checkbox" checked=${isSelected} onChange=${select} aria-label=${`Select ${nameOf(row)}`} />
              </td>`
            }
            ${columns.map((column) => html`<${Cell} key=${column.title} column=${column} row=${row} />`)}
          </tr>`;
        })}
      </tbody>
    </table>
  </div>`;
}

/** @param {any} row @param {number} index */
const idOf = (row, index) => row.id ?? index;

/** @param {any} row */
const titleOf = (row) => row.name;

/** @param {{column: Column, row: any}} props */
function Cell({ column, row }) {
  const content = column.cell(row);
  if (column.isName) return html`<th scope="row" class=${classOf(column)}>${content}</th>`;
  return html`<td class=${classOf(column)}>${content}</td>`;
}

/** @param {Column} column */
const classOf = ({ isNumber, isWideOnly, isName }) =>
  [isNumber && "number", isWideOnly && "wide-only", isName && "name"].filter(Boolean).join(" ");
