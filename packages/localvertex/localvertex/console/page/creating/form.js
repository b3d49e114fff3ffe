// The form made from a pipeline, with its parameters, and what is known before a run starts.
import { Check, html, Input, Notice, plural, Section, Select, useMemo, useState } from "../ui/ui.js";
import { ParameterField, Settings } from "./fields.js";

const MANY = 10;

/** @param {FormProps} props */
export function Form({ overview, draft, errors, isTried, onChange }) {
  const [text, setText] = useState("");
  const [isOnlyChanged, setIsOnlyChanged] = useState(false);
  const { parameters, groups } = overview;
  const byName = useMemo(() => new Map(parameters.map((each) => [each.name, each])), [overview]);
  const errorOf = (/** @type {string} */ name) =>
    isTried || draft.parameters.has(name) ? errors.get(`parameters.${name}`) : undefined;
  const wanted = text.trim().toLowerCase();
  const isSought = isOnlyChanged || wanted !== "";
  const isShown = (/** @type {string} */ name) =>
    (isTried && errors.has(`parameters.${name}`)) ||
    ((!isOnlyChanged || draft.parameters.has(name)) &&
      `${name} ${byName.get(name)?.description}`.toLowerCase().includes(wanted));
  const numShown = parameters.filter((each) => isShown(each.name)).length;
  const fields = (/** @type {string[]} */ names) => html`<div class="fields">
    ${names.filter(isShown).map(
      (name) => html`<${ParameterField} key=${name} parameter=${byName.get(name)} onChange=${onChange}
        error=${errorOf(name)} text=${draft.parameters.get(name)} />`,
    )}
  </div>`;
  const reset = html`<button type="button" disabled=${!draft.parameters.size}
    onClick=${() => onChange({ part: "parameters", text: null })}>Reset all</button>`;
  return html`
    <${Section} title="Parameters" actions=${parameters.length > 0 && reset}>
      ${
        parameters.length > MANY &&
        html`<div class="toolbar">
          <${Input} type="search" aria-label="Find a parameter" placeholder="Find a parameter" value=${text}
            onText=${setText} />
          <${Check} title="Only changed" isOn=${isOnlyChanged} onTurn=${setIsOnlyChanged} />
          <span class="muted end" aria-live="polite">${numShown} of ${parameters.length}</span>
        </div>`
      }
      ${
        !numShown &&
        html`<p class="muted">${parameters.length ? "No parameter matches." : "The pipeline has no parameters."}</p>`
      }
      ${groups.map(({ title, names, more }) => {
        const folded = more.filter(isShown);
        const numChanged = folded.filter((name) => draft.parameters.has(name)).length;
        const count = plural(folded.length, "more parameter");
        const isOpen = isSought || folded.some((name) => errorOf(name));
        return html`<div key=${title} class="field-group" hidden=${!folded.length && !names.some(isShown)}>
          ${title && html`<h3>${title}</h3>`}
          ${fields(names)}
          ${
            folded.length > 0 &&
            html`<details open=${isOpen}>
              <summary>${count}${numChanged > 0 && ` (${numChanged} changed)`}</summary>
              ${fields(folded)}
            </details>`
          }
        </div>`;
      })}
    <//>
    <${Settings} draft=${draft} errors=${errors} onChange=${onChange} />`;
}

/** What cannot run here. @param {RefusalsProps} props */
export function Refusals({ refusals, notes }) {
  return html`<div aria-live="polite">
    ${
      refusals.length > 0 &&
      html`<${Notice} kind="bad" title="This pipeline cannot run here"><${Lines} texts=${refusals} /><//>`
    }
    ${notes.length > 0 && html`<${Notice} title="Different from Vertex AI"><${Lines} texts=${notes} /><//>`}
  </div>`;
}

/** @param {{texts: string[]}} props */
const Lines = ({ texts }) =>
  html`<ul>${texts.map((each) => html`<li key=${each} class="description">${each}</li>`)}</ul>`;

/**
 * The machine check of `python -m localvertex machines check`, for the region chosen.
 * @param {object} props
 * @param {MachineFindings} props.check
 * @param {DraftState} props.draft
 * @param {ServerInfo | null} props.server
 * @param {(change: Change) => void} props.onChange
 */
export function MachineCheck({ check: { findings, notes }, draft, server, onChange }) {
  const { region } = draft.settings;
  return html`<section class="card machines">
    <h2>Machine check</h2>
    <p class="muted small">Whether Vertex AI accepts the machines of this pipeline. Nothing leaves this machine.</p>
    <label for="region">Region</label>
    <${Select} id="region" value=${region} choices=${server?.regions ?? [region]}
      onText=${(text) => onChange({ part: "settings", name: "region", text })} />
    <div aria-live="polite">
      ${!findings.length && html`<p class="good">✓ No findings</p>`}
      <ul class="findings">
        ${findings.map((each) => html`<${Finding} key=${each.rule + each.path + each.message} finding=${each} />`)}
      </ul>
      ${
        findings.some((each) => each.severity === "error") &&
        html`<p class="small">Vertex AI would refuse this run.</p>`
      }
      ${notes.map((each) => html`<p key=${each} class="muted small">${each}</p>`)}
    </div>
  </section>`;
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
