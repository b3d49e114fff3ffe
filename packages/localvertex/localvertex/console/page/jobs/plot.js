// Lines drawn by uPlot in the colours of the page, with their values as text, which the keyboard reads, too.

import { html, useEffect, useRef, useState } from "../ui/ui.js";
import UPlot from "../vendor/uplot.js";

const HEIGHT = 200;

const MANY = 40;

/** A figure, which is drawn again when its width or the colour scheme changes. @param {Plot} plot */
export function Chart(plot) {
  const { title, over, data, read } = plot;
  const [index, setIndex] = useState(/** @type {number | null} */ (null));
  const box = useRef(/** @type {any} */ (null));
  const drawn = useRef(/** @type {any} */ (null));
  const newest = useRef(plot);
  newest.current = plot;
  useEffect(() => {
    const element = box.current;
    const draw = () => {
      drawn.current?.destroy();
      drawn.current = new UPlot(options(element, newest, setIndex), newest.current.data, element);
    };
    draw();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const sizes = new ResizeObserver(() => drawn.current.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    scheme.addEventListener("change", draw);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener("change", draw);
      drawn.current.destroy();
    };
  }, []);
  useEffect(() => {
    // What a user has enlarged stays so while values are added.
    const { data: before, scales } = drawn.current;
    const { min, max } = scales.x;
    const isWhole = !before || min === null || (min <= before[0][0] && max >= before[0].at(-1));
    drawn.current.setData(data, isWhole);
    if (!isWhole) drawn.current.redraw();
  }, [data]);
  const { at, shown, text } = read(index);
  return html`<figure class="chart">
    <figcaption><h3>${title}</h3><span class="readout">${shown}</span></figcaption>
    <div ref=${box} role="slider" tabindex="0" aria-label=${`${title} ${over}`} aria-valuemin="0"
      aria-valuemax=${Math.max(0, data[0].length - 1)} aria-valuenow=${Math.max(0, at)} aria-valuetext=${text}
      onKeyDown=${(event) => moved(drawn.current, event)}
      onBlur=${() => drawn.current.setCursor({ left: -10, top: -10 })}></div>
  </figure>`;
}

/** The index of the value at the pointer; null if it is elsewhere. @param {UPlot} plot */
const indexAt = ({ cursor: { left = -1, idx } }) => (left < 0 ? null : (idx ?? null));

/**
 * Move the cursor to another value by keyboard. Values at the same x count as one, as they do for the pointer.
 * @param {UPlot} plot @param {KeyboardEvent} event
 */
function moved(plot, event) {
  const xs = [...new Set(plot.data[0])];
  const at = indexAt(plot);
  const present = at === null ? xs.length - 1 : xs.indexOf(plot.data[0][at]);
  const far = Math.max(1, Math.round(xs.length / 10));
  const next = { ArrowLeft: present - 1, ArrowRight: present + 1, PageUp: present - far, PageDown: present + far };
  const index = { ...next, Home: 0, End: xs.length - 1 }[event.key];
  if (index === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  plot.setCursor({ left: plot.valToPos(xs[Math.min(Math.max(index, 0), xs.length - 1)], "x"), top: 0 });
}

/**
 * @param {HTMLElement} element @param {{current: Plot}} newest @param {(index: number | null) => void} onHover
 */
function options(element, newest, onHover) {
  const style = getComputedStyle(element);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const { lines, isLog, axes = [] } = newest.current;
  const axis = {
    stroke: colour("--muted"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const points = { show: (/** @type {UPlot} */ plot) => plot.data[0].length < MANY };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false },
    scales: { x: { time: false }, y: { distr: isLog ? 3 : 1 } },
    axes: [28, 56].map((size, index) => ({ ...axis, size, ...axes[index] })),
    series: [{}, ...lines(colour).map((each) => ({ points, ...each }))],
    hooks: {
      draw: [(/** @type {UPlot} */ plot) => newest.current.onDraw?.(plot, colour)],
      setCursor: [(/** @type {UPlot} */ plot) => onHover(indexAt(plot))],
    },
  };
}
