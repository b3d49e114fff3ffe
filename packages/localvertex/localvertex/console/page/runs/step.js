// Everything about one step but its log: state, inputs, outputs with their artifacts, and its command.

import { useLoad } from "../server/load.js";
import { link } from "../ui/address.js";
import { Code, Duration, html, State, Time, useState, Values } from "../ui/ui.js";
import { Artifact } from "./artifact.js";
import { quoted } from "./shell.js";
import { remark } from "./steps.js";

/** Artifacts whose content is shown at once: the first of those that the page can show. */
const OPEN = 3;
const SHOWN = ["system.HTML", "system.Markdown", "system.Metrics", "system.ClassificationMetrics"];

/** @param {{run: any, entry: any, view: string}} props */
export function Step({ run, entry, view }) {
  const since = entry.state === "RUNNING" ? entry.start_time : null;
  /** @type {[string, any][]} */
  const facts = [
    ["State", html`<${State} state=${entry.state} />`],
    ["Started", entry.start_time && html`<${Time} at=${entry.start_time} />`],
    ["Duration", entry.start_time && html`<${Duration} seconds=${entry.seconds} since=${since} />`],
    ["Attempts", entry.attempts > 0 && String(entry.attempts)],
    ["Exit code", Number.isInteger(entry.exit_code) && String(entry.exit_code)],
    ["Remark", remark(entry)],
    ["Path", entry.path],
  ];
  return html`<section class="details step" aria-label=${`Step ${entry.title}`}>
    <header>
      <h2><bdi>${entry.title}</bdi></h2>
      <a class="button" href=${link(["runs", run.id], { view })}>Close</a>
    </header>
    ${entry.error && html`<p class="error" role="alert">${entry.error}</p>`}
    <${Values} values=${facts.filter(([, value]) => value)} />
    <${Side} run=${run} entry=${entry} side="outputs" title="Outputs" />
    <${Side} run=${run} entry=${entry} side="inputs" title="Inputs" />
    ${entry.kind === "step" && html`<${Command} run=${run} entry=${entry} />`}
  </section>`;
}

/**
 * Parameters and artifacts of one side.
 * @param {{run: any, entry: any, side: "inputs" | "outputs", title: string}} props
 */
function Side({ run, entry, side, title }) {
  const parameters = Object.entries(entry[side].parameters);
  const artifacts = inOrder(entry[side].artifacts);
  if (!parameters.length && !artifacts.length) return null;
  const shown = artifacts.filter(([, found]) => SHOWN.includes(found[0]?.type?.schemaTitle)).map(([name]) => name);
  const open = side === "outputs" ? shown.slice(0, OPEN) : [];
  return html`<h3>${title}</h3>
    ${parameters.length > 0 && html`<${Values} values=${parameters.map(([name, value]) => [plain(name), value])} />`}
    ${artifacts.map(([name, found]) =>
      found.slice(0, 50).map(
        (artifact, index) => html`<${Artifact}
      key=${`${name} ${index} ${artifact.uri} ${entry.attempts}`} run=${run.id} task=${entry.path}
      side=${side} name=${name}
      index=${index} artifact=${artifact} isOpen=${index === 0 && open.includes(name)} />`,
      ),
    )}`;
}

/**
 * Those that the page can show come first.
 * @param {Record<string, any[]>} artifacts
 */
function inOrder(artifacts) {
  const isLater = (/** @type {any[]} */ found) => (SHOWN.includes(found[0]?.type?.schemaTitle) ? 0 : 1);
  return Object.entries(artifacts).sort(([a, as], [b, bs]) => isLater(as) - isLater(bs) || a.localeCompare(b));
}

/** A name without what kfp's compiler puts before it. @param {string} name */
const plain = (name) => name.replace(/^pipelinechannel--/, "");

/** The resolved command, read when it is opened. @param {{run: any, entry: any}} props */
function Command({ run, entry }) {
  const [isOpen, setIsOpen] = useState(false);
  const query = new URLSearchParams({ task: entry.path });
  const { data, error } = useLoad(isOpen ? `/local/runs/${run.id}/command?${query}` : null);
  return html`<details class="part" onToggle=${(/** @type {any} */ event) => setIsOpen(event.target.open)}>
    <summary><h3>Command</h3></summary>
    ${error && html`<p class="error">${error.message}</p>`}
    ${data && !data.command.length && html`<p class="muted">This step has no command, or has not started.</p>`}
    ${data?.image && html`<p class="muted">Container image <bdi>${data.image}</bdi></p>`}
    ${data?.command.length > 0 && html`<${Code} text=${data.command.map(quoted).join(" ")} />`}
  </details>`;
}
