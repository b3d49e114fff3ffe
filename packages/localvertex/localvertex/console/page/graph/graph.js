// The graph of a run, or of a file that has not run yet. The server places the boxes; their states come from the tasks.
import { count, html, label, Select, StateSymbol, useEffect, useMemo, useRef, useState } from "../ui/ui.js";
import { Content } from "./boxes.js";
import { firstStep, isGroup, placesIn, pressOnBox } from "./keys.js";
import { countsOf, itemsOf, placesOf, statesOf } from "./states.js";
import { pressKey, STEP, useViewport } from "./viewport.js";

const [LEAST, MOST] = [160, 620];

/** Items of a loop that can be chosen; all others are below the loop in the list of steps. */
const MAX_ITEMS = 500;

/**
 * Keep a graph. Folding a group requests another drawing, with new positions.
 * @param {(closed: Record<string, string>) => Promise<any>} load - Requests the graph; `closed` is the field of the
 *   routes, left out at first.
 * @param {string} key - What the graph depends on; another graph is loaded with nothing folded.
 * @returns {[{data: any, error: Error | null}, (id: string) => void]} With the function that folds or unfolds a group.
 */
export function useGraph(load, key) {
  const [found, setFound] = useState({ data: /** @type {any} */ (null), error: /** @type {Error | null} */ (null) });
  const newest = useRef(0);
  const ask = (/** @type {Record<string, string>} */ closed) => {
    const number = ++newest.current;
    load(closed).then(
      (data) => number === newest.current && setFound({ data, error: null }),
      (error) => number === newest.current && setFound({ data: null, error }),
    );
  };
  useEffect(() => {
    setFound({ data: null, error: null });
    ask({});
    return () => {
      newest.current++;
    };
  }, [key]);
  const toggle = (/** @type {string} */ id) => {
    const boxes = [...placesIn(found.data).values()].map(({ box }) => box);
    const closed = new Set(boxes.filter((box) => isGroup(box) && !box.is_open).map((box) => box.id));
    if (!closed.delete(id)) closed.add(id);
    ask({ closed: [...closed].map(encodeURIComponent).join(",") });
  };
  return [found, toggle];
}

/** @param {GraphProps} props */
export function Graph({ graph, tasks, hasEnded = false, selected = "", onSelect, onToggle }) {
  const [chosen, setChosen] = useState(() => /** @type {Chosen} */ (new Map()));
  const [focused, setFocused] = useState("");
  const entries = useMemo(() => (tasks ? placesOf(tasks) : null), [tasks]);
  const boxes = useMemo(() => placesIn(graph), [graph]);
  const states = useMemo(() => statesOf(graph, entries, chosen, hasEnded), [graph, entries, chosen, hasEnded]);
  const leaves = [...boxes.values()].filter(({ box }) => !box.is_open);
  const counts = countsOf(leaves.map(({ id }) => states.get(id)?.state ?? ""));
  const found = entries?.byPath.get(selected)?.box ?? selected;
  const current = [...boxes.values()].find(({ id, box }) => id === found || box.groups.includes(found))?.id ?? found;
  const { frame, layer, viewport, pointing } = useViewport(graph, boxes, () => {
    const [worst] = counts[0] ?? [];
    const isWanted = (/** @type {string} */ id) =>
      current ? id === current : ["FAILED", "RUNNING"].includes(worst) && states.get(id)?.state === worst;
    return leaves.find(({ id }) => isWanted(id)) ?? firstStep(boxes);
  });
  /** @type {Record<string, (id: string) => void>} */
  const actions = {
    pick: (id) => viewport.current?.wasDragged || onSelect?.(states.get(id)?.path || id),
    fold: (id) => {
      if (viewport.current) viewport.current.anchor = id;
      onToggle?.(id);
    },
    see: (id) => {
      setFocused(id);
      const box = boxes.get(id);
      if (box && !viewport.current?.pointers.size) viewport.current?.reveal(box);
    },
  };
  const newest = useRef(actions);
  newest.current = actions;
  /** @type {Look} */
  const look = {
    states,
    selected: current,
    current: boxes.has(focused) ? focused : (boxes.keys().next().value ?? ""),
    onPick: (id) => newest.current.pick(id),
    onFocus: (id) => newest.current.see(id),
    onFold: onToggle && ((id) => newest.current.fold(id)),
    items: (box) =>
      entries &&
      box.kind === "for each" &&
      html`<${Items} key="items" box=${box} entries=${entries} chosen=${chosen} onChoose=${setChosen} />`,
  };
  return html`<div class="card graph">
    <${Bar} counts=${counts} viewport=${viewport} />
    <svg ref=${frame} ...${pointing} tabindex="0" role="group" aria-label="Graph" aria-describedby="graph-keys"
        height=${Math.min(MOST, Math.max(LEAST, graph.height + 32))}
        onKeyDown=${(event) => press(event, viewport.current, boxes, look)}>
      <g ref=${layer}><${Content} box=${graph} look=${look} /></g>
    </svg>
  </div>`;
}

/**
 * @param {KeyboardEvent} event
 * @param {import("./viewport.js").Viewport | null} viewport
 * @param {Map<string, PlacedBox>} places
 * @param {Look} look
 */
function press(event, viewport, places, look) {
  const target = /** @type {Element} */ (event.target);
  if (!viewport || event.ctrlKey || event.metaKey || event.altKey || target.closest("select")) return;
  const { frame } = viewport;
  const id = target.getAttribute("data-id");
  const go = (/** @type {string} */ next) => viewport.focus(next);
  viewport.wasDragged = false;
  const leave = () => frame.focus({ preventScroll: true });
  const isBox = id !== null && pressOnBox({ places, go, leave, ...look }, id, event.key);
  if (isBox || pressKey(viewport, event.key)) event.preventDefault();
}

/** How many steps have which state, and the buttons that enlarge the drawing. @param {BarProps} props */
function Bar({ counts, viewport }) {
  const zoom = (/** @type {number} */ factor) => viewport.current?.zoomBy(factor);
  return html`<div class="bar">
    <p class="counts" aria-live="polite">
      ${counts.map(
        ([state, number]) => html`<span key=${state}>
          <${StateSymbol} state=${state} />${count(number)} ${label(state).toLowerCase()}
        </span>`,
      )}
    </p>
    <p id="graph-keys" class="keys">Arrow keys move, Tab goes to the steps, Enter opens one, Space folds a group.</p>
    <button class="icon" title="Smaller (-)" aria-label="Smaller" onClick=${() => zoom(1 / STEP)}>−</button>
    <button class="icon" title="Larger (+)" aria-label="Larger" onClick=${() => zoom(STEP)}>+</button>
    <button title="Show all (0)" onClick=${() => viewport.current?.fit()}>Fit</button>
  </div>`;
}

/**
 * The choice of the item of a loop whose states are shown; at first, of all items together.
 * @param {ItemsProps} props
 */
function Items({ box, entries, chosen, onChoose }) {
  const items = itemsOf(entries, box.id, chosen);
  if (!items.length) return null;
  const offered = items.slice(0, MAX_ITEMS).map(({ item, text }) => [item, text]);
  return html`<foreignObject x=${box.width - 140} y="3" width="134" height="24">
    <${Select} aria-label=${`Item of ${box.name}`} value=${chosen.get(box.id) ?? ""}
      choices=${[["", `All ${count(items.length)} items`], ...offered]}
      onText=${(item) => onChoose(new Map(chosen).set(box.id, item))} />
  </foreignObject>`;
}
