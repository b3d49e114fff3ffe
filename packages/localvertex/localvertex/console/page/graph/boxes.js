// The boxes and lines of the graph. A box whose state has not changed is not rendered again.
import { Elapsed, html, StateSymbol, useMemo } from "../ui/ui.js";
import { HEADER, isGroup } from "./keys.js";

/** Where texts begin: beside the icon, and beside the button of a group, for which the server leaves room. */
const [LEFT, BUTTON, ICON] = [12, 18, 24];

/** What is inside a box, and the lines between. @param {{box: Drawing, look: Look}} props */
export function Content({ box, look }) {
  return html`
    ${box.lines.length > 0 && html`<path class="line" d=${box.lines.join("")} />`}
    ${box.boxes.map((each) => html`<${Box} key=${each.id} box=${each} look=${look} />`)}`;
}

/** A step, a group whose steps are not drawn, or an open group with its steps. @param {BoxProps} props */
function Box({ box, look }) {
  const state = /** @type {BoxState} */ (look.states.get(box.id));
  const own = useMemo(
    () => html`<${Own} box=${box} look=${look} state=${state} />`,
    [
      ...[box, state.state, state.text, state.since],
      ...[look.selected === box.id, look.current === box.id, Boolean(look.onFold)],
    ],
  );
  const kind = box.is_open ? "group" : isGroup(box) ? "folded" : "step";
  return html`<g class=${`box ${kind} ${state.state}`} transform=${`translate(${box.x} ${box.y})`}>
    ${own}
    ${box.is_open && html`${look.items(box)}<${Content} box=${box} look=${look} />`}
  </g>`;
}

/** A line has no room for its kind. @param {GraphBox} box */
const shownKind = ({ kind, is_open, height }) => (is_open || height !== HEADER) && kind !== "step" && kind;

/** What is drawn of a box itself. @param {OwnProps} props */
function Own({ box, look, state }) {
  const { is_open, kind, width } = box;
  const height = is_open ? HEADER : box.height;
  const canFold = isGroup(box) && look.onFold;
  const x = LEFT + (canFold ? BUTTON : 0) + (state.state ? ICON : 0);
  const title = html`${box.title}${" "}${shownKind(box) && html`<tspan class="kind" dx="4">${`${kind} `}</tspan>`}`;
  const clock = state.since && html`<tspan aria-hidden="true"> · <${Elapsed} since=${state.since} /></tspan>`;
  const label = html`${state.text}${clock}
    ${state.text && box.note && " · "}${box.note}`;
  return html`
    ${is_open && html`<rect class="outline" width=${width} height=${box.height} rx="6" />`}
    ${!is_open && isGroup(box) && html`<rect class="behind" x="4" y="4" width=${width} height=${height} rx="6" />`}
    <${Button} box=${box} look=${look} state=${state} height=${height}>
      ${
        state.state &&
        html`<g transform=${`translate(${x - ICON} ${(height - 16) / 2})`}><${StateSymbol} state=${state.state} /></g>`
      }
      ${
        height === HEADER
          ? html`<text x=${x} y="19">${title}<tspan class="label" dx="4">${label}</tspan></text>`
          : html`<text x=${x} y=${state.text || box.note ? 19 : 27}>${title}</text>
            <text class="label" x=${x} y="35">${label}</text>`
      }
    <//>
    ${canFold && html`<${Fold} box=${box} look=${look} height=${height} />`}`;
}

/** The part of a box that can be chosen. @param {ButtonProps} props */
function Button({ box, look, state, height, children }) {
  const parts = [box.title, shownKind(box), state.text, state.text && box.note && "·", box.note];
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

/** What folds a group, for the mouse; the space bar does the same. @param {FoldProps} props */
function Fold({ box, look, height }) {
  return html`<g class="fold" aria-hidden="true" onClick=${() => look.onFold?.(box.id)}>
    <title>${box.is_open ? "Fold" : "Unfold"} (space bar)</title>
    <rect width=${LEFT + BUTTON} height=${height} />
    <path transform=${`translate(${LEFT - 2} ${height / 2 - 8})`} d=${box.is_open ? "M4 6l4 4 4-4" : "M6 4l4 4-4 4"} />
  </g>`;
}
