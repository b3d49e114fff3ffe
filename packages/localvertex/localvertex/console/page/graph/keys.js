// The graph by keyboard: arrow keys go from box to box, Enter opens one, the space bar folds a group.

/** Height of the header of an open group, which is what can be chosen of it; the server places no box there. */
export const HEADER = 28;

/** @param {GraphBox} box */
export const isGroup = (box) => !["step", "importer"].includes(box.kind);

/**
 * Return where the part of each box is that can be chosen, in the coordinates of the whole drawing.
 *
 * @param {Drawing} graph
 * @returns {Map<string, PlacedBox>}
 */
export function placesIn(graph) {
  const found = new Map();
  const add = (/** @type {Drawing} */ outer, /** @type {number} */ left, /** @type {number} */ top) => {
    for (const box of outer.boxes) {
      const [x, y] = [left + box.x, top + box.y];
      const height = box.is_open ? HEADER : box.height;
      found.set(box.id, { id: box.id, box, x, y, width: box.width, height });
      add(box, x, y);
    }
  };
  add(graph, 0, 0);
  return found;
}

/** The uppermost box that is no open group. @param {Map<string, PlacedBox>} places @returns {PlacedBox | undefined} */
export const firstStep = (places) =>
  [...places.values()].filter(({ box }) => !box.is_open).sort((a, b) => a.y - b.y)[0];

/** @type {Record<string, [number, number]>} */
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * Return the nearest box in the direction of an arrow key; undefined for another key, or without such a box.
 * @param {Map<string, PlacedBox>} places @param {string} from @param {string} key
 */
function neighbour(places, from, key) {
  const direction = DIRECTIONS[key];
  const start = places.get(from);
  if (!direction || !start) return undefined;
  const [dx, dy] = direction;
  const middle = (/** @type {PlacedBox} */ box) => box.x + box.width / 2;
  let [best, least] = [/** @type {string | undefined} */ (undefined), Number.POSITIVE_INFINITY];
  for (const each of places.values()) {
    const [x, y] = [middle(each) - middle(start), each.y - start.y];
    const along = dx * x + dy * y;
    const aside = Math.abs(dy * x) + Math.abs(dx * y);
    if (each.id !== from && along > 1 && aside <= 2 * along + start.width && along + 2 * aside < least) {
      [best, least] = [each.id, along + 2 * aside];
    }
  }
  return best;
}

/**
 * What a key does on a box; returns whether it does anything.
 * @param {{places: Map<string, PlacedBox>, go: (id: string) => void, onPick: (id: string) => void,
 *   onFold?: (id: string) => void, leave: () => void}} graph
 * @param {string} id
 * @param {string} key
 */
export function pressOnBox({ places, go, onPick, onFold, leave }, id, key) {
  const box = places.get(id)?.box;
  if (key in DIRECTIONS) {
    const next = neighbour(places, id, key);
    if (next) go(next);
  } else if (key === "Escape") leave();
  else if (key === " " && box && isGroup(box) && onFold) onFold(id);
  else if (key === "Enter" || key === " ") onPick(id);
  else return false;
  return true;
}
