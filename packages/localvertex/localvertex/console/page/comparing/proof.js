// The page of `prove`: each fault with its verdict, and its curves on top of those of A, an undisturbed run.

import { html, render, Section, Table } from "../ui/ui.js";
import { Curves } from "./curves.js";
import { Letter } from "./letters.js";

/** @type {any[]} */
const proofs = JSON.parse(document.getElementById("report")?.textContent ?? "[]");

/** @type {Column[]} */
const COLUMNS = [
  { title: "Fault", cell: ({ fault }, at) => html`<${Letter} index=${at + 1} /> ${fault}`, isName: true },
  { title: "Verdict", cell: ({ verdict }) => verdict },
  { title: "Resumed at", cell: ({ marks: [at] }) => at, isNumber: true },
  { title: "Differs at", cell: ({ marks: [, at] }) => at, isNumber: true },
  { title: "Cause", cell: ({ causes, reason }) => causes.join(" or ") || reason },
  { title: "Steps again", cell: ({ steps_lost }) => steps_lost, isNumber: true },
  { title: "Processes left", cell: ({ processes_left }) => processes_left || "", isNumber: true },
  { title: "First difference", cell: ({ differences: [first] }) => first },
];

const root = /** @type {HTMLElement} */ (document.getElementById("page"));
root.replaceChildren();
render(
  html`<main id="main" class="view compare"><h1>Proof</h1>${proofs.map(
    ({ name, faults, series }) => html`<${Section} title=${name}>
      <${Table} isRegion caption="Faults" columns=${COLUMNS} 
        rows=${faults.map((/** @type {any} */ each, /** @type {number} */ at) => ({ ...each, ...series[at + 1] }))} />
      <p class="muted">A is an undisturbed run, with which all others are compared. Dotted lines mark where a run
        resumed and where it first differs from A.</p>
      <${Curves} steps=${[]} curves=${[{ task: name, series }]} />
    <//>`,
  )}</main>`,
  root,
);
