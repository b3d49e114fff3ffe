// The runs that are compared: their letters, states and pipelines; one can be added or removed.

import { useLoad } from "../server/load.js";
import { link } from "../ui/address.js";
import { Duration, html, Problem, Select, State, Time } from "../ui/ui.js";
import { Letter, letter } from "./letters.js";

const NUM_OFFERED = 500;

/** @param {{ids: string[], canAdd: boolean, onChange: (ids: string[]) => void}} props */
export function Chosen({ ids, canAdd, onChange }) {
  const { data, error } = useLoad(`/local/runs?page_size=${NUM_OFFERED}`);
  const rows = /** @type {RunRow[]} */ (data?.runs ?? []);
  const known = new Map(rows.map((row) => [row.id, row]));
  const remove = (/** @type {string} */ id) => onChange(ids.filter((each) => each !== id));
  const others = rows.filter((row) => !ids.includes(row.id)).map((row) => [row.id, offered(row)]);
  return html`
    ${error && html`<${Problem} title="The list of runs cannot be read" error=${error} />`}
    <ul class="chosen" aria-label="Compared runs">
      ${ids.map(
        (id, index) =>
          html`<${Card} key=${id} id=${id} index=${index} row=${known.get(id)} onRemove=${() => remove(id)} />`,
      )}
    </ul>
    ${
      canAdd &&
      html`<div class="toolbar">
        <${Select} aria-label="Add a run" key=${ids.join()} value="" choices=${[["", "Add a run…"], ...others]}
          onChoose=${(/** @type {string} */ id) => id && onChange([...ids, id])} />
      </div>`
    }`;
}

/** @param {RunRow} row */
const offered = (row) => (row.name === row.id ? row.id : `${row.name} (${row.id})`);

/** @param {{id: string, index: number, row?: RunRow, onRemove: () => void}} props */
function Card({ id, index, row, onRemove }) {
  return html`<li class="card">
    <${Letter} index=${index} />
    <div>
      <a class="title" href=${link(["runs", id])}><bdi>${row?.name ?? id}</bdi></a>
      ${
        row &&
        html`<p class="small"><${State} state=${row.state} /></p>
        <p class="small muted"><bdi>${row.pipeline}</bdi></p>
        <p class="small muted"><${Time} at=${row.create_time} /> · <${Duration} seconds=${row.seconds} /></p>`
      }
    </div>
    <button class="icon" onClick=${onRemove} aria-label=${`Remove run ${letter(index)}, ${row?.name ?? id}`}>
      <svg viewBox="0 0 18 18" aria-hidden="true"><path d="M5 5l8 8M13 5l-8 8" /></svg>
    </button>
  </li>`;
}
