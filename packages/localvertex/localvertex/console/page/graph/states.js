// The states of the graph's boxes, from the entries of a record: updates change states, but move no box.
import { count, duration, label } from "../ui/ui.js";

/** What a box with several entries shows. */
const WORST_FIRST = ["FAILED", "RUNNING", "CANCELLED", "PENDING", "SUCCEEDED", "SKIPPED", "GIVEN", "NOT_TRIGGERED"];

/** @type {BoxState} */
const NO_STATE = { state: "", text: "", path: "", since: null };

/**
 * Find the box of each entry: its path without the numbers of iterations.
 * @param {Entry[]} tasks - Parents before children, as records have them.
 * @returns {EntryPlaces}
 */
export function placesOf(tasks) {
  const root = /** @type {PlacedEntry} */ ({ entry: /** @type {any} */ (null), box: "", items: [] });
  const found = { byBox: new Map(), byLoop: new Map(), byPath: new Map() };
  for (const entry of tasks) {
    const cut = entry.path.lastIndexOf("/");
    const outer = (cut > 0 && found.byPath.get(entry.path.slice(0, cut))) || root;
    const name = entry.path.slice(cut + 1);
    const isItem = entry.kind === "iteration";
    const box = isItem ? outer.box : outer.box ? `${outer.box}/${name}` : name;
    const items = isItem ? [...outer.items, /** @type {[string, string]} */ ([outer.box, name])] : outer.items;
    const place = { entry, box, items };
    found.byPath.set(entry.path, place);
    const group = isItem ? found.byLoop : found.byBox;
    if (!group.has(box)) group.set(box, []);
    group.get(box).push(place);
  }
  return found;
}

/**
 * Keep the entries of the chosen iterations.
 * @param {PlacedEntry[]} places
 * @param {Chosen} chosen
 */
function inChosen(places, chosen) {
  return places.filter(({ items }) => items.every(([loop, item]) => (chosen.get(loop) || item) === item));
}

/**
 * The state of each box of a drawing.
 *
 * @param {Drawing} graph
 * @param {EntryPlaces | null} places - Null: it has not run.
 * @param {Chosen} chosen
 * @param {boolean} hasEnded - What has no entry will not run any more.
 * @returns {Map<string, BoxState>}
 */
export function statesOf(graph, places, chosen, hasEnded) {
  const states = new Map();
  const add = (/** @type {Drawing} */ box, /** @type {string} */ outer) => {
    for (const each of box.boxes) {
      // A box has the state of the groups that it alone is in, until the run reaches it.
      const known = [each.id, ...each.groups].map((id) => places?.byBox.get(id)).find(Boolean);
      const state = places ? stateOf(inChosen(known ?? [], chosen), outer, hasEnded) : NO_STATE;
      states.set(each.id, state);
      add(each, state.state);
    }
  };
  add(graph, "");
  return states;
}

/**
 * @param {PlacedEntry[]} found
 * @param {string} outer - State of the group, which a box has that the run did not reach.
 * @param {boolean} hasEnded
 * @returns {BoxState}
 */
function stateOf(found, outer, hasEnded) {
  const [[worst, number] = ["", 0]] = countsOf(found.map(({ entry }) => entry.state));
  const isOuter = ["GIVEN", "NOT_TRIGGERED"].includes(outer);
  if (!worst && hasEnded && !isOuter) return { ...NO_STATE, text: "Did not run" };
  const state = worst || (isOuter ? outer : "PENDING");
  const entry = found.find((each) => each.entry.state === state)?.entry;
  const path = entry?.path ?? "";
  if (found.length > 1) {
    const text = `${count(number)} of ${count(found.length)} ${label(state).toLowerCase()}`;
    return { state, text, path, since: null };
  }
  const text = entry?.start_time && state !== "RUNNING" ? `${label(state)} · ${duration(entry.seconds)}` : label(state);
  return { state, text, path, since: state === "RUNNING" ? (entry?.start_time ?? null) : null };
}

/**
 * How often each state occurs, the worst first.
 * @param {string[]} states
 * @returns {Array<[string, number]>}
 */
export function countsOf(states) {
  const counts = new Map();
  for (const each of states) counts.set(each, (counts.get(each) ?? 0) + 1);
  return WORST_FIRST.filter((each) => counts.has(each)).map((each) => [each, counts.get(each)]);
}

/**
 * The iterations of a loop that can be chosen, with the beginning of each item.
 * @param {EntryPlaces} places
 * @param {string} loop
 * @param {Chosen} chosen
 * @returns {Array<{item: string, text: string}>}
 */
export function itemsOf(places, loop, chosen) {
  const found = new Map();
  for (const { entry, items } of inChosen(places.byLoop.get(loop) ?? [], new Map(chosen).set(loop, ""))) {
    const [, item] = items[items.length - 1];
    found.set(item, found.has(item) ? "" : textOf(entry, places.byPath.get(loopOf(entry))?.entry));
  }
  return [...found].map(([item, text]) => ({ item, text: text ? `${item}: ${text}` : `Item ${item}` }));
}

/** The path of the loop of an iteration. @param {Entry} entry */
export const loopOf = ({ path }) => path.slice(0, path.lastIndexOf("/"));

/** What an iteration received and its loop did not. @param {Entry} entry @param {Entry | undefined} loop */
export function textOf(entry, loop) {
  const outer = loop?.inputs?.parameters ?? {};
  const own = Object.entries(entry.inputs?.parameters ?? {}).filter(([name]) => !(name in outer));
  const text = own.map(([, value]) => (typeof value === "string" ? value : JSON.stringify(value))).join(" ");
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}
