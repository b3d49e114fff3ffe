// The steps of a run as a table: the same as the graph for narrow screens and screen readers.

import { link } from "../ui/address.js";
import { Duration, html, State } from "../ui/ui.js";

const MOST_ROWS = 1000;

/** @param {{run: any, tasks: Map<string, any>, selected: string, query: URLSearchParams}} props */
export function Steps({ run, tasks, selected, query }) {
  const rows = inOrder(tasks);
  return html`<div class="table steps">
    <table>
      <caption class="hidden">Steps of the run</caption>
      <thead><tr>
        <th scope="col">Step</th><th scope="col">State</th><th scope="col" class="number">Duration</th>
        <th scope="col" class="wide-only">Remark</th>
      </tr></thead>
      <tbody>${rows.slice(0, MOST_ROWS).map(
        ({ entry, depth }) => html`<${Row} key=${entry.path} run=${run} entry=${entry}
        depth=${depth} isSelected=${entry.path === selected} view=${query.get("view") ?? ""} />`,
      )}</tbody>
    </table>
    ${rows.length > MOST_ROWS && html`<p class="muted">and ${rows.length - MOST_ROWS} more; run.json contains all</p>`}
  </div>`;
}

/** @param {{run: any, entry: any, depth: number, isSelected: boolean, view: string}} props */
function Row({ run, entry, depth, isSelected, view }) {
  const since = entry.state === "RUNNING" ? entry.start_time : null;
  const name = entry.kind === "iteration" ? `Item ${entry.path.split("/").at(-1)}` : entry.display_name;
  return html`<tr class=${isSelected ? "selected" : ""}>
    <th scope="row" style=${{ "--depth": Math.min(depth, 8) }}>
      <a href=${link(["runs", run.id, entry.path], { view })} aria-current=${isSelected ? "true" : undefined}>
        <bdi>${name}</bdi></a>
    </th>
    <td><${State} state=${entry.state} /></td>
    <td class="number">${entry.start_time ? html`<${Duration} seconds=${entry.seconds} since=${since} />` : "–"}</td>
    <td class="wide-only muted">${remark(entry)}</td>
  </tr>`;
}

/** What a row shows besides the state. @param {any} entry */
export function remark(entry) {
  const found = [entry.cache_hit && "outputs from the cache", entry.restored && "finished before the run was resumed"];
  if (entry.attempts > 1) found.push(`${entry.attempts} attempts`);
  return [...found, entry.note].filter(Boolean).join(", ");
}

/**
 * Return the entries, parents before children: iterations by number, all others by start.
 * @param {Map<string, any>} tasks
 */
function inOrder(tasks) {
  /** @type {Map<string, any[]>} */
  const children = new Map();
  for (const each of tasks.values()) {
    const parent = each.path.slice(0, Math.max(0, each.path.lastIndexOf("/")));
    children.set(parent, [...(children.get(parent) ?? []), each]);
  }
  /** @type {{entry: any, depth: number}[]} */
  const rows = [];
  const add = (/** @type {string} */ parent, /** @type {number} */ depth) => {
    for (const entry of (children.get(parent) ?? []).sort(byStart)) {
      rows.push({ entry, depth });
      add(entry.path, depth + 1);
    }
  };
  add("", 0);
  return rows;
}

/** @param {any} first @param {any} second */
function byStart(first, second) {
  if (first.kind === "iteration" && second.kind === "iteration") return number(first) - number(second);
  return (first.start_time ?? "~").localeCompare(second.start_time ?? "~");
}

/** @param {any} entry */
const number = (entry) => Number(entry.path.slice(entry.path.lastIndexOf("/") + 1));
