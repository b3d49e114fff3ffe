// The part of a drawing that is seen: moved by drag, wheel and keys, enlarged by ctrl and wheel or two fingers.
import { useLayoutEffect, useRef } from "../ui/ui.js";

const [LEAST, MOST] = [0.05, 2];

/** How much a key or a button enlarges. */
export const STEP = 1.25;

const MARGIN = 16;

/** Pixels between press and release up to which a drag is a click. */
const CLICK = 4;

/** The viewport of one drawing. It changes one attribute, so that moving costs no rendering. */
export class Viewport {
  /** @param {SVGSVGElement} frame @param {SVGGElement} layer */
  constructor(frame, layer) {
    this.frame = frame;
    this.layer = layer;
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.size = { width: 1, height: 1 };
    this.first = /** @type {Place | undefined} */ (undefined);
    this.wasDragged = false;
    /** Until the user moves or enlarges the drawing, it is fitted again in a frame of another size. */
    this.isMoved = false;
    /** Id of the box that stays where it is when the drawing changes. */
    this.anchor = "";
    this.pointers = /** @type {Map<number, {x: number, y: number}>} */ (new Map());
  }

  /**
   * Show the beginning of a drawing in its own size; one that is too wide has its first step in the middle.
   * @param {{width: number, height: number}} size @param {Place} [first] - The box to be seen.
   */
  begin(size, first) {
    [this.size, this.first] = [size, first];
    const { clientWidth } = this.frame;
    this.scale = 1;
    const isWide = first && clientWidth < 0.8 * size.width;
    const x = isWide ? clientWidth / 2 - first.x - first.width / 2 : Math.max(MARGIN, (clientWidth - size.width) / 2);
    [this.x, this.y] = [x, MARGIN];
    this.#apply();
    if (first) this.reveal(first);
    this.isMoved = false;
  }

  resized() {
    if (this.isMoved) this.panBy(0, 0);
    else this.begin(this.size, this.first);
  }

  fit() {
    const { clientWidth, clientHeight } = this.frame;
    const { width, height } = this.size;
    const whole = Math.min((clientWidth - 2 * MARGIN) / width, (clientHeight - 2 * MARGIN) / height);
    this.scale = Math.min(1, Math.max(whole, LEAST));
    [this.x, this.y] = [(clientWidth - width * this.scale) / 2, (clientHeight - height * this.scale) / 2];
    this.isMoved = true;
    this.#apply();
  }

  /**
   * Show another drawing; the box of the anchor stays where it is.
   * @param {{width: number, height: number}} size
   * @param {Map<string, Place>} before @param {Map<string, Place>} after
   */
  replace(size, before, after) {
    const [old, now] = [before.get(this.anchor), after.get(this.anchor)];
    [this.size, this.isMoved] = [size, true];
    this.panBy(old && now ? (old.x - now.x) * this.scale : 0, old && now ? (old.y - now.y) * this.scale : 0);
    // The box was replaced, and with it the focus was lost.
    if (now && document.activeElement === document.body) this.focus(this.anchor);
    this.anchor = "";
  }

  /** @param {string} id - Of a box. */
  focus(id) {
    const all = /** @type {NodeListOf<SVGGElement>} */ (this.frame.querySelectorAll("[data-id]"));
    [...all].find((each) => each.dataset.id === id)?.focus({ preventScroll: true });
  }

  /** Move the drawing; returns whether there was room to. @param {number} dx @param {number} dy */
  panBy(dx, dy) {
    const [x, y] = [this.x, this.y];
    [this.x, this.y] = [x + dx, y + dy];
    this.isMoved ||= dx !== 0 || dy !== 0;
    this.#apply();
    return Math.abs(this.x - x) + Math.abs(this.y - y) > 0.5;
  }

  /**
   * Enlarge around a point of the frame, or around its middle.
   * @param {number} factor @param {number} [x] @param {number} [y]
   */
  zoomBy(factor, x = this.frame.clientWidth / 2, y = this.frame.clientHeight / 2) {
    const scale = Math.min(MOST, Math.max(LEAST, this.scale * factor));
    const by = scale / this.scale;
    this.isMoved = true;
    [this.x, this.y, this.scale] = [x - (x - this.x) * by, y - (y - this.y) * by, scale];
    this.#apply();
  }

  /** Move a box into sight. @param {Place} box */
  reveal(box) {
    const across = missing(this.x + box.x * this.scale, box.width * this.scale, this.frame.clientWidth);
    const down = missing(this.y + box.y * this.scale, box.height * this.scale, this.frame.clientHeight);
    if (across || down) this.panBy(across, down);
  }

  #apply() {
    const { clientWidth, clientHeight } = this.frame;
    this.x = clamped(this.x, this.size.width * this.scale, clientWidth);
    this.y = clamped(this.y, this.size.height * this.scale, clientHeight);
    this.layer.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
  }
}

/** Keep a drawing within a frame; a small one is in its middle or anywhere inside. @type {Along} */
const clamped = (at, length, room) => {
  const least = Math.min(MARGIN, room - length - MARGIN);
  return Math.min(Math.max(at, least), Math.max(MARGIN, room - length - MARGIN));
};

/** How far a part has to move to be inside; its beginning matters more than its end. @type {Along} */
const missing = (at, length, room) =>
  at < MARGIN || length > room - 2 * MARGIN ? MARGIN - at : Math.min(0, room - MARGIN - at - length);

/** The page scrolls where the drawing has no more room. @param {Viewport} viewport @param {WheelEvent} event */
function wheel(viewport, event) {
  const unit = event.deltaMode ? 16 : 1;
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    const box = viewport.frame.getBoundingClientRect();
    viewport.zoomBy(1.0015 ** (-event.deltaY * unit), event.clientX - box.left, event.clientY - box.top);
  } else {
    const [dx, dy] = event.shiftKey ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
    if (viewport.panBy(-dx * unit, -dy * unit)) event.preventDefault();
  }
}

/** @param {Viewport} viewport @param {PointerEvent} event */
function press(viewport, event) {
  if (event.button || /** @type {Element} */ (event.target).closest("select")) return;
  viewport.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  viewport.wasDragged = false;
}

/** @param {Viewport} viewport @param {PointerEvent} event */
function move(viewport, event) {
  const before = viewport.pointers.get(event.pointerId);
  if (!before) return;
  const [dx, dy] = [event.clientX - before.x, event.clientY - before.y];
  if (!viewport.wasDragged && Math.hypot(dx, dy) < CLICK) return;
  viewport.wasDragged = true;
  viewport.frame.setPointerCapture(event.pointerId);
  const now = { x: event.clientX, y: event.clientY };
  const other = [...viewport.pointers].find(([id]) => id !== event.pointerId)?.[1];
  viewport.pointers.set(event.pointerId, now);
  if (!other) {
    viewport.panBy(dx, dy);
    return;
  }
  const box = viewport.frame.getBoundingClientRect();
  const grown = Math.hypot(now.x - other.x, now.y - other.y) / Math.hypot(before.x - other.x, before.y - other.y);
  viewport.zoomBy(grown || 1, (now.x + other.x) / 2 - box.left, (now.y + other.y) / 2 - box.top);
}

/** What a key does to the viewport; returns whether it does anything. @param {Viewport} viewport @param {string} key */
export function pressKey(viewport, key) {
  /** @type {Record<string, [number, number]>} */
  const ways = { ArrowLeft: [64, 0], ArrowRight: [-64, 0], ArrowUp: [0, 64], ArrowDown: [0, -64] };
  if (key in ways) viewport.panBy(...ways[key]);
  else if (key === "+" || key === "=") viewport.zoomBy(STEP);
  else if (key === "-") viewport.zoomBy(1 / STEP);
  else if (key === "0") viewport.fit();
  else return false;
  return true;
}

/**
 * The viewport of a component's drawing.
 * @param {{width: number, height: number}} graph @param {Map<string, Place>} places
 * @param {() => Place | undefined} first - Returns the box to be seen at the beginning.
 * @returns {{frame: any, layer: any, viewport: {current: Viewport | null}, pointing: object}} `pointing`: what
 *   the frame listens to.
 */
export function useViewport(graph, places, first) {
  const frame = useRef(/** @type {any} */ (null));
  const layer = useRef(/** @type {any} */ (null));
  const viewport = useRef(/** @type {Viewport | null} */ (null));
  const before = useRef(places);
  useLayoutEffect(() => {
    viewport.current = new Viewport(frame.current, layer.current);
    viewport.current.begin(graph, first());
    const observer = new ResizeObserver(() => viewport.current?.resized());
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (before.current !== places) viewport.current?.replace(graph, before.current, places);
    before.current = places;
  }, [places]);
  /** @param {(viewport: Viewport, event: any) => void} act */
  const on = (act) => (/** @type {Event} */ event) => viewport.current && act(viewport.current, event);
  const end = on(({ pointers }, event) => pointers.delete(event.pointerId));
  const pointing = {
    ...{ onWheel: on(wheel), onPointerDown: on(press), onPointerMove: on(move) },
    ...{ onPointerUp: end, onPointerCancel: end },
  };
  return { frame, layer, viewport, pointing };
}
