// Lines drawn by uPlot in the colours of the page.

import { useEffect, useRef } from "../ui/ui.js";
import UPlot from "../vendor/uplot.js";

/** Points are shown while they are few. */
const MANY = 40;

/** @typedef {(name: string) => string} Colour - The value of a variable of the style sheets. */

/**
 * @typedef {object} Plot
 * @property {any} data - The values of x, then those of each line.
 * @property {number} height
 * @property {(colour: Colour) => object[]} lines - How each line is drawn.
 * @property {object[]} [axes] - What the axes have besides their colours.
 * @property {(index: number | null) => void} onHover - Called with the index of x below the pointer.
 * @property {(plot: any, colour: Colour) => void} [onDraw] - Draws more.
 */

/**
 * Draw into an element, again when its width or the colour scheme changes.
 * @param {Plot} plot - The newest data and functions count.
 * @returns {{current: HTMLElement | null}} The reference for the element, which must be there at once.
 */
export function usePlot(plot) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const drawn = useRef(/** @type {any} */ (null));
  const newest = useRef(plot);
  newest.current = plot;
  const { data, height } = plot;
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (box.current);
    const draw = () => {
      drawn.current?.destroy();
      drawn.current = new UPlot(options(element, newest), newest.current.data, element);
    };
    draw();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const sizes = new ResizeObserver(() => drawn.current.setSize({ width: element.clientWidth, height }));
    sizes.observe(element);
    const move = (/** @type {KeyboardEvent} */ event) => moved(drawn.current, event);
    const leave = () => drawn.current.setCursor({ left: -10, top: -10 });
    element.addEventListener("keydown", move);
    element.addEventListener("blur", leave);
    scheme.addEventListener("change", draw);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener("change", draw);
      element.removeEventListener("keydown", move);
      element.removeEventListener("blur", leave);
      drawn.current.destroy();
    };
  }, []);
  useEffect(() => drawn.current.setData(data), [data]);
  return box;
}

/**
 * Move the cursor to another value by keyboard. Values at the same x count as one, as they do for the pointer.
 * @param {any} plot @param {KeyboardEvent} event
 */
function moved(plot, event) {
  const xs = [...new Set(plot.data[0])];
  const present = plot.cursor.left < 0 ? xs.length - 1 : xs.indexOf(plot.data[0][plot.cursor.idx]);
  const far = Math.max(1, Math.round(xs.length / 10));
  const next = { ArrowLeft: present - 1, ArrowRight: present + 1, PageUp: present - far, PageDown: present + far };
  const index = { ...next, Home: 0, End: xs.length - 1 }[event.key];
  if (index === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  plot.setCursor({ left: plot.valToPos(xs[Math.min(Math.max(index, 0), xs.length - 1)], "x"), top: 0 });
}

/** @param {HTMLElement} element @param {{current: Plot}} newest @returns {any} */
function options(element, newest) {
  const style = getComputedStyle(element);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const { height, lines, axes = [] } = newest.current;
  const axis = {
    stroke: colour("--muted"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const points = { show: (/** @type {any} */ plot) => plot.data[0].length < MANY };
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: false } },
    axes: [28, 56].map((size, index) => ({ ...axis, size, ...axes[index] })),
    series: [{}, ...lines(colour).map((each) => ({ points, ...each }))],
    hooks: {
      draw: [(/** @type {any} */ plot) => newest.current.onDraw?.(plot, colour)],
      setCursor: [(/** @type {any} */ plot) => newest.current.onHover(plot.cursor.left < 0 ? null : plot.cursor.idx)],
    },
  };
}
