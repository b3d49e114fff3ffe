// The page of `prove`: the curves of disturbed runs on top of those of an undisturbed one.

import { figure, html, render, Section, Select, Table, useState } from "../ui/ui.js";
import { Chart } from "./plot.js";

const ALL = "all faults";

/** @type {any[]} */
const proofs = JSON.parse(document.getElementById("report")?.textContent ?? "[]");

const COLUMNS = [
  { title: "Fault", cell: (/** @type {any} */ each) => each.fault, isName: true },
  { title: "Verdict", cell: (/** @type {any} */ each) => each.verdict },
  { title: "Cause", cell: (/** @type {any} */ each) => each.causes.join(" or ") || each.reason },
  { title: "Steps again", cell: (/** @type {any} */ each) => each.steps_lost ?? "–", isNumber: true },
  { title: "First difference", cell: (/** @type {any} */ { differences: [first] }) => first },
];

/** @param {any} proof */
function Proof({ name, faults, curves }) {
  const [chosen, setChosen] = useState(ALL);
  const choices = [ALL, ...faults.map((/** @type {any} */ each) => each.fault)];
  const choice = html`<label>Fault <${Select} value=${chosen} choices=${choices} onText=${setChosen} /></label>`;
  return html`<${Section} title=${name} actions=${choice}>
    <${Table} caption="Faults" columns=${COLUMNS} rows=${faults} />
    <div class="charts">${curves.map(
      (/** @type {any} */ curve) => html`<${Curve} key=${`${curve.title} ${chosen}`} ...${curve}
        faults=${faults} chosen=${chosen} />`,
    )}</div>
  <//>`;
}

/** @param {any} curve */
function Curve({ title, steps, undisturbed, runs, faults, chosen }) {
  const drawn = faults
    .map((/** @type {any} */ fault, /** @type {number} */ at) => ({ ...fault, values: runs[at] }))
    .filter((/** @type {any} */ each) => chosen === ALL || each.fault === chosen);
  const [data] = useState([[...steps.keys()], ...drawn.map((/** @type {any} */ each) => each.values), undisturbed]);
  const lines = (/** @type {(name: string) => string} */ colour) => [
    ...drawn.map((/** @type {any} */ each) => ({ stroke: colour(each.causes.length ? "--bad" : "--muted"), width: 2 })),
    { stroke: colour("--accent"), width: 1.5, dash: [4, 3] },
  ];
  const read = (/** @type {number | null} */ index) => {
    const at = index ?? steps.length - 1;
    const values = [undisturbed[at], ...(drawn.length === 1 ? [drawn[0].values[at]] : [])];
    const text = `${values.map((each) => (each === null ? "–" : figure(each))).join(", ")} at ${steps[at]}`;
    return { at, shown: text, text };
  };
  const values = (/** @type {any} */ _, /** @type {number[]} */ found) => found.map((at) => steps[at] ?? "");
  return html`<${Chart} title=${title} over="over steps" data=${data} lines=${lines} read=${read}
    axes=${[{ values }, {}]} />`;
}

const root = /** @type {HTMLElement} */ (document.getElementById("page"));
root.replaceChildren();
render(html`<main id="main" class="view">${proofs.map((each) => html`<${Proof} ...${each} />`)}</main>`, root);
