// A parameter against a metric, with the letter of each run at its values.

import { figure, html, Section, Select, useState } from "../ui/ui.js";
import { letter } from "./letters.js";

const [WIDTH, HEIGHT, EDGE, LETTER] = [400, 220, 56, 14];

/** @param {unknown} value */
const isNumber = (value) => typeof value === "number";

/** @param {ScatterProps} props */
export function Scatter({ runs, parameters, metrics }) {
  const [[across, up], setAxes] = useState(["0", "0"]);
  const all = [
    parameters
      .map(({ name, values }) => ({ name, values: values.map(({ value }) => value) }))
      .filter(({ values }) => new Set(values.filter(isNumber)).size > 1),
    metrics.filter(({ values }) => values.filter(isNumber).length > 1),
  ];
  const [x, y] = [all[0][Number(across)], all[1][Number(up)]];
  if (!x || !y) return null;
  const places = runs.map((_, run) => run).filter((run) => isNumber(x.values[run]) && isNumber(y.values[run]));
  const scale = (/** @type {any[]} */ values, /** @type {number} */ length) => {
    const [low, high] = [Math.min, Math.max].map((of) => of(...places.map((run) => values[run])));
    return {
      low,
      high,
      at: (/** @type {number} */ run) => EDGE + ((values[run] - low) / (high - low || 1)) * (length - 2 * EDGE),
    };
  };
  const [right, top] = [scale(x.values, WIDTH), scale(y.values, HEIGHT)];
  /** Letters of the same place are side by side. @type {number[][]} */
  const spots = [];
  for (const run of places) {
    const [x, y] = [right.at(run), HEIGHT - top.at(run)];
    let shift = LETTER;
    while (spots.some(([, x2, y2, by]) => Math.hypot(x2 + by - x - shift, y2 - y) < LETTER)) shift += 4;
    spots.push([run, x, y, shift]);
  }
  const spoken = places
    .map((run) => `run ${letter(run)}: ${figure(x.values[run])}, ${figure(y.values[run])}`)
    .join("; ");
  const choices = all.map((rows) => rows.map(({ name }, index) => [String(index), name]));
  return html`<${Section} title="Parameter and metric">
    <div class="toolbar">
      <label>Across <${Select} value=${across} choices=${choices[0]} onText=${(text) => setAxes([text, up])} /></label>
      <label>Up <${Select} value=${up} choices=${choices[1]} onText=${(text) => setAxes([across, text])} /></label>
    </div>
    <svg class="scatter" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`${x.name}, ${y.name}; ${spoken}`}>
      <path d=${`M0 0V${HEIGHT}H${WIDTH}`} />
      ${spots.map(
        ([run, x, y, shift]) => html`<g key=${run} style=${{ fill: `var(--run-${run % 8})` }}>
          <circle cx=${x} cy=${y} r="3" /><text x=${x + shift} y=${y}>${letter(run)}</text></g>`,
      )}
      <text class="mark" x="26" y=${EDGE}>${figure(top.high)}</text>
      <text class="mark" x="26" y=${HEIGHT - EDGE}>${figure(top.low)}</text>
      <text class="mark" x=${EDGE} y=${HEIGHT - 10}>${figure(right.low)}</text>
      <text class="mark" x=${WIDTH - EDGE} y=${HEIGHT - 10}>${figure(right.high)}</text>
    </svg>
  <//>`;
}
