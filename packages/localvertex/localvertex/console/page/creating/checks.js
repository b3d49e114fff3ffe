// What is known before a run starts: what cannot run here, and whether Vertex AI has the machines.
import { html, Notice, Select } from "../ui/ui.js";

/** @param {{refusals: string[], notes: string[]}} props */
export function Refusals({ refusals, notes }) {
  return html`<div aria-live="polite">
    ${
      refusals.length > 0 &&
      html`<div class="notice bad">
        <strong>This pipeline cannot run here</strong>
        <${Lines} texts=${refusals} />
      </div>`
    }
    ${notes.length > 0 && html`<${Notice} title="Different from Vertex AI"><${Lines} texts=${notes} /><//>`}
  </div>`;
}

/** @param {{texts: string[]}} props */
const Lines = ({ texts }) => html`<ul>${texts.map((each) => html`<li key=${each}>${each}</li>`)}</ul>`;

/**
 * The machine check of `python -m accelerators check`, for the region chosen.
 * @param {object} props
 * @param {MachineFindings} props.check
 * @param {DraftState} props.draft
 * @param {ServerInfo | null} props.server
 * @param {(change: Change) => void} props.onChange
 */
export function MachineCheck({ check, draft, server, onChange }) {
  return html`<section class="card machines">
    <h2>Machine check</h2>
    <p class="muted small">Whether Vertex AI accepts the machines of this pipeline. Nothing leaves this machine.</p>
    <label for="region">Region</label>
    <${Select} id="region" value=${draft.region} choices=${server?.regions ?? [draft.region]}
      onChoose=${(/** @type {string} */ text) => onChange({ part: "region", text })} />
    <div aria-live="polite"><${Findings} check=${check} /></div>
  </section>`;
}

/** @param {{check: MachineFindings}} props */
function Findings({ check: { findings, notes } }) {
  const errors = findings.filter((each) => each.severity === "error").length;
  return html`
    ${!findings.length && html`<p class="good">✓ No findings</p>`}
    <ul class="findings">
      ${findings.map((each) => html`<${Finding} key=${each.rule + each.path + each.message} finding=${each} />`)}
    </ul>
    ${errors > 0 && html`<p class="small">Vertex AI would refuse this run.</p>`}
    ${notes.map((each) => html`<p key=${each} class="muted small">${each}</p>`)}`;
}

/** @param {{finding: MachineFinding}} props */
function Finding({ finding: { severity, message, alternatives, path, rule } }) {
  return html`<li class=${severity}>
    <strong>${severity === "error" ? "✕ Error" : "! Warning"}</strong> <code class="muted">${rule}</code>
    <p>${message.replace(/^[a-z](?=[a-z]* )/, (first) => first.toUpperCase())}</p>
    ${alternatives.length > 0 && html`<p class="nearest">Nearest: ${alternatives.join("; ")}</p>`}
    <p class="muted small">${path}</p>
  </li>`;
}
