// One version of a model: what it is, where it came from, its place among the others, and a prediction to try.

import { useLoad } from "../server/load.js";
import { go, link } from "../ui/address.js";
import { html, Loading, Page, Problem, Tabs, useState } from "../ui/ui.js";
import { DeleteVersion, EditAliases } from "./changes.js";
import { Aliases } from "./facts.js";
import { Overview } from "./overview.js";
import { TryModel } from "./try_image.js";
import { Versions } from "./versions.js";

/** @param {{params: Record<string, string>, query: URLSearchParams}} props */
export default function Model({ params, query }) {
  const { id, version } = params;
  const { data, error, reload } = useLoad(`/local/models/${encodeURIComponent(id)}/${encodeURIComponent(version)}`);
  const [dialog, setDialog] = useState("");
  const parent = { title: "Models", href: link(["models"]) };
  if (!data) {
    return html`<${Page} title=${id} parent=${parent}>
      ${error ? html`<${Problem} error=${error} onRetry=${reload} />` : html`<${Loading} />`}
    <//>`;
  }
  const tab = query.get("tab") ?? "overview";
  const heading = html`${data.display_name} <span class="muted">version ${data.version}</span>${" "}
    <${Aliases} names=${data.aliases} />`;
  const actions = html`
    <button onClick=${() => setDialog("aliases")} disabled=${Boolean(data.aliases_problem)}>Edit aliases</button>
    <button onClick=${() => setDialog("delete")}>Delete version</button>`;
  const close = () => setDialog("");
  const left = (/** @type {boolean} */ isModelLeft) => go(link(isModelLeft ? ["models", id, "default"] : ["models"]));
  return html`<${Page} title=${`${data.display_name} version ${data.version}`} heading=${heading} parent=${parent}
      actions=${actions}>
    ${error && html`<${Problem} error=${error} onRetry=${reload} />`}
    ${[data.problem, data.aliases_problem]
      .filter(Boolean)
      .map((text) => html`<${Problem} key=${text} title="Damaged" error=${text} />`)}
    <${Tabs} label="Model" selected=${tab} tabs=${[
      { id: "overview", title: "Overview" },
      { id: "versions", title: "Versions", count: data.versions.length },
      { id: "try", title: "Try it" },
    ]} onSelect=${(/** @type {string} */ each) => go(link(["models", id, version], { tab: each }), { replace: true })}>
      ${tab === "versions" && html`<${Versions} model=${data} />`}
      ${tab === "try" && html`<${TryModel} model=${data} />`}
      ${tab === "overview" && html`<${Overview} model=${data} />`}
    <//>
    ${dialog === "aliases" && html`<${EditAliases} model=${data} onChange=${reload} onClose=${close} />`}
    ${dialog === "delete" && html`<${DeleteVersion} model=${data} onDelete=${left} onClose=${close} />`}
  <//>`;
}
