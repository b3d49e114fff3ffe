// A table of rows, which may be selected.
import { html, useState } from "./html.js";

/**
 * @typedef {object} Column
 * @property {string} title - The heading.
 * @property {any} [heading] - What is shown in place of the title.
 * @property {(row: any, index: number) => any} cell - The content of a cell.
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
 * @param {Set<string>} [props.selected] - The keys of the selected rows.
 * @param {(key: string, isSelected: boolean) => void} [props.onSelect] - Without it rows cannot be selected.
 * @param {boolean} [props.isRegion] - Whether the keyboard can scroll it: a table without links that may be too wide.
 * @param {number} [props.most] - Rows that are shown until a user asks for all.
 * @param {(row: any) => string} [props.nameOf] - What a row is called for screen readers, where rows can be selected.
 */
export function Table({
  caption,
  columns,
  rows,
  keyOf = (row, index) => row.id ?? index,
  selected,
  onSelect,
  isRegion,
  most = Number.POSITIVE_INFINITY,
  nameOf = (row) => row.name,
}) {
  const [isWhole, setIsWhole] = useState(false);
  const region = isRegion && { tabindex: 0, role: "region", "aria-label": caption };
  return html`<div class="table" ...${region}>
    <table>
      <caption class="hidden">${caption}</caption>
      <thead>
        <tr>
          ${onSelect && html`<th class="select"><span class="hidden">Select</span></th>`}
          ${columns.map(
            (each) => html`<th key=${each.title} scope="col" class=${classOf(each)}>${each.heading ?? each.title}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.slice(0, isWhole ? rows.length : most).map((row, index) => {
          const key = keyOf(row, index);
          const isSelected = Boolean(selected?.has(key));
          return html`<tr key=${key} class=${isSelected ? "selected" : ""}>
            ${
              onSelect &&
              html`<td class="select"><input type="checkbox" checked=${isSelected}
                aria-label=${`Select ${nameOf(row)}`} onChange=${(event) => onSelect(key, event.target.checked)} />
              </td>`
            }
            ${columns.map((column) => {
              const [tag, scope] = column.isName ? ["th", "row"] : ["td"];
              return html`<${tag} key=${column.title} scope=${scope} class=${classOf(column)}>
                ${column.cell(row, index)}<//>`;
            })}
          </tr>`;
        })}
      </tbody>
    </table>
    ${
      !isWhole &&
      rows.length > most &&
      html`<p class="show-more"><button onClick=${() => setIsWhole(true)}>
        Show all ${rows.length} ${caption.split(" ")[0].toLowerCase()}</button></p>`
    }
  </div>`;
}

/** @param {Column} column */
const classOf = ({ isNumber, isWideOnly, isName }) =>
  [isNumber && "number", isWideOnly && "wide-only", isName && "name"].filter(Boolean).join(" ");
