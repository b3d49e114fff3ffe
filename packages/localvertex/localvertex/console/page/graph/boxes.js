// The boxes and lines of the graph. A box whose state has not changed is not rendered again.
import { duration, html, StateSymbol, useMemo, useNow } from "../ui/ui.js";

/** @typedef {import("./states.js").BoxState} State */

/**
 * What a box needs besides its place.
 * @typedef {object} Look
 * @property {Map<string, State>} states
 * @property {string} selected - Id of the selected box.
 * @property {string} current - Id of the box that Tab comes to.
 * @property {(id: string) => void} onPick
 * @property {(id: string) => void} onFocus
 * @property {(id: string) => void} [onFold] - Without it groups cannot be folded.
 * @property {(box: any) => any} items - The choice of an iteration, for the header of a loop.
 */

/** Height of the header of a group, above which the server places no box. */
const HEADER = 28;

/** Where texts begin: beside the icon, and beside the button of a group, for which the server leaves room. */
const [LEFT, BUTTON, ICON] = [12, 18, 24];

/** What is inside a box, and the lines between. @param {{box: any, look: Look}} props */
export function Content({ box, look }) {
  return html`
    ${box.lines.length > 0 && html`<path class="line" d=${box.lines.join("")} />`}
    ${box.boxes.map(
      (/** @type {any} */ each) => html`<${each.is_open ? Group : Closed} key=${each.id} box=${each} look=${look} />`,
    )}`;
}

/** A step, or a group whose steps are not drawn. @param {{box: any, look: Look}} props */
function Closed({ box, look }) {
  const state = /** @type {State} */ (look.states.get(box.id));
  return useMemo(
    () => {
      const canUnfold = isGroup(box) && look.onFold;
      const x = LEFT + (canUnfold ? BUTTON : 0) + (state.state ? ICON : 0);
      return html`<g class=${`box ${isGroup(box) ? "folded" : "step"} ${state.state}`}
        transform=${`translate(${box.x} ${box.y})`}>
      ${isGroup(box) && html`<rect class="behind" x="4" y="4" width=${box.width} height=${box.height} rx="6" />`}
      <${Button} box=${box} look=${look} state=${state} height=${box.height}>
        ${state.state && html`<${Icon} state=${state.state} x=${x - ICON} y=${(box.height - 16) / 2} />`}
        <text x=${x} y=${state.text || box.note ? 19 : 27}>${box.title}${" "}<${Kind} box=${box} /></text>
        <text class="label" x=${x} y="35"><${Label} box=${box} state=${state} /></text>
      <//>
      ${canUnfold && html`<${Fold} box=${box} look=${look} height=${box.height} />`}
    </g>`;
    },
    keysOf(box, look),
  );
}

/** A group with its steps. @param {{box: any, look: Look}} props */
function Group({ box, look }) {
  const state = /** @type {State} */ (look.states.get(box.id));
  const header = useMemo(
    () => {
      const x = LEFT + (look.onFold ? BUTTON : 0) + (state.state ? ICON : 0);
      return html`
      <rect class="outline" width=${box.width} height=${box.height} rx="6" />
      <${Button} box=${box} look=${look} state=${state} height=${HEADER}>
        ${state.state && html`<${Icon} state=${state.state} x=${x - ICON} y="6" />`}
        <text x=${x} y="19">
          ${box.title}${" "}<${Kind} box=${box} />
          <tspan class="label" dx="4"><${Label} box=${box} state=${state} /></tspan>
        </text>
      <//>
      ${look.onFold && html`<${Fold} box=${box} look=${look} height=${HEADER} />`}`;
    },
    keysOf(box, look),
  );
  return html`<g class=${`box group ${state.state}`} transform=${`translate(${box.x} ${box.y})`}>
    ${header}${look.items(box)}
    <${Content} box=${box} look=${look} />
  </g>`;
}

/** What the markup of a box depends on. @param {any} box @param {Look} look */
function keysOf(box, look) {
  const { state, text, since } = /** @type {State} */ (look.states.get(box.id));
  return [box, state, text, since, look.selected === box.id, look.current === box.id, Boolean(look.onFold)];
}

/** @param {any} box */
export const isGroup = (box) => !["step", "importer"].includes(box.kind);

/**
 * The part of a box that can be chosen.
 * @param {{box: any, look: Look, state: State, height: number, children?: any}} props
 */
function Button({ box, look, state, height, children }) {
  const parts = [box.title, box.kind !== "step" && box.kind, state.text, state.text && box.note && "·", box.note];
  // What is seen comes first, so that a user can say it; then what is cut off.
  const name = [...parts, box.title !== box.name && box.name].filter(Boolean).join(" ");
  return html`<g class="choice" role="button" data-id=${box.id} tabindex=${look.current === box.id ? 0 : -1}
      aria-label=${name} aria-pressed=${look.selected === box.id}
      aria-expanded=${isGroup(box) && look.onFold ? box.is_open : undefined}
      onClick=${() => look.onPick(box.id)} onFocus=${() => look.onFocus(box.id)}>
    <title>${box.name}</title>
    <rect class="face" width=${box.width} height=${height} rx="6" />
    ${children}
  </g>`;
}

/** @param {{box: any}} props */
function Kind({ box }) {
  return box.kind !== "step" && html`<tspan class="kind" dx="4">${`${box.kind} `}</tspan>`;
}

/** @param {{box: any, state: State}} props */
function Label({ box, state }) {
  const elapsed = state.since && html` · <${Elapsed} since=${state.since} />`;
  return html`${state.text}${elapsed}${state.text && box.note && " · "}${box.note}`;
}

/** How long a step has been running. @param {{since: string}} props */
function Elapsed({ since }) {
  const seconds = Math.floor((useNow(true) - Date.parse(since)) / 1000);
  return duration(Math.max(0, seconds)).replace(/\.\d/, "");
}

/** @param {{state: string, x: number, y: number | string}} props */
function Icon({ state, x, y }) {
  return html`<g transform=${`translate(${x} ${y})`}><${StateSymbol} state=${state} /></g>`;
}

/**
 * What folds a group, for the mouse; the space bar does the same.
 * @param {{box: any, look: Look, height: number}} props
 */
function Fold({ box, look, height }) {
  return html`<g class="fold" aria-hidden="true" onClick=${() => look.onFold?.(box.id)}>
    <title>${box.is_open ? "Fold" : "Unfold"} (space bar)</title>
    <rect width=${LEFT + BUTTON} height=${height} />
    <path transform=${`translate(${LEFT - 2} ${height / 2 - 8})`} d=${box.is_open ? "M4 6l4 4 4-4" : "M6 4l4 4-4 4"} />
  </g>`;
}
