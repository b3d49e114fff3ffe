// A table of rows, which may be selected.
import { html, useRef, useState } from "./html.js";

/** @param {TableProps} props */
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
  order = "",
  onOrder,
  hasAll,
}) {
  const keys = rows.map(keyOf);
  const [isWhole, setIsWhole] = useState(false);
  const drawn = useRef(new Map());
  const before = drawn.current;
  drawn.current = new Map();
  const region = isRegion && { tabindex: 0, role: "region", "aria-label": caption };
  return html`<div class="table" ...${region}>
    <table>
      <caption class="hidden">${caption}</caption>
      <thead>
        <tr>
          ${
            onSelect &&
            html`<th class="select">${
              hasAll
                ? html`<input type="checkbox" aria-label="Select all rows"
                    checked=${keys.every((key) => selected?.has(key))}
                    onChange=${(event) => onSelect(keys, event.target.checked)} />`
                : html`<span class="hidden">Select</span>`
            }</th>`
          }
          ${columns.map((each) => {
            const { title, by, heading = title } = each;
            const direction = order.endsWith(" desc") ? "descending" : "ascending";
            return html`<th key=${by ?? title} scope="col" class=${classOf(each)}
                aria-sort=${by && order.replace(" desc", "") === by ? direction : undefined}>
              ${by && onOrder ? html`<button class="sort" onClick=${() => onOrder(by)}>${heading}</button>` : heading}
            </th>`;
          })}
        </tr>
      </thead>
      <tbody>
        ${rows.slice(0, isWhole ? rows.length : most).map((row, index) => {
          const key = keys[index];
          const isSelected = Boolean(selected?.has(key));
          // Markup that is the same object is not compared: a list is drawn in proportion to what changed.
          const of = [row, columns, isSelected];
          const kept = before.get(key);
          const isSame = kept?.of.every((/** @type {unknown} */ each, /** @type {number} */ at) => each === of[at]);
          const shown = isSame
            ? kept.shown
            : html`<tr key=${key} class=${isSelected ? "selected" : undefined}>
            ${
              onSelect &&
              html`<td class="select"><input type="checkbox" checked=${isSelected}
                aria-label=${`Select ${nameOf(row)}`} onChange=${(event) => onSelect([key], event.target.checked)} />
              </td>`
            }
            ${columns.map((column) => {
              const [tag, scope] = column.isName ? ["th", "row"] : ["td"];
              return html`<${tag} key=${column.by ?? column.title} scope=${scope} class=${classOf(column)}>
                ${column.cell(row, index)}<//>`;
            })}
          </tr>`;
          drawn.current.set(key, { of, shown });
          return shown;
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

/** A table with a column for each thing that is compared, such as a run. @param {ComparedProps} props */
export const Compared = ({ caption, rows, of, name, cell, title = "Name", isNumber, more = [] }) =>
  html`<${Table} isRegion caption=${caption} rows=${rows} columns=${[
    { title, cell: name, isName: true },
    ...of.map((each, index) => ({ ...each, isNumber, cell: (/** @type {any} */ row) => cell(row, index) })),
    ...more,
  ]} />`;

/** @param {Column} column */
const classOf = ({ isNumber, isWideOnly, isName }) =>
  [isNumber && "number", isWideOnly && "wide-only", isName && "name"].filter(Boolean).join(" ") || undefined;
