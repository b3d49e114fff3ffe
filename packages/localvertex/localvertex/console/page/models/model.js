// One version of a model: what it is, where it came from, and its place among the others.

import { post, remove, useAction, useLoad, vertex } from "../server/server.js";
import {
  Asking,
  bytes,
  Code,
  Confirm,
  count,
  Dialog,
  DropZone,
  go,
  html,
  Input,
  Loaded,
  link,
  metricNames,
  Page,
  Problem,
  percent,
  replace,
  Section,
  Table,
  Tabs,
  Time,
  useState,
  Value,
  Values,
} from "../ui/ui.js";
import { Aliases, Figures, Fingerprints, metricsOf, Run } from "./facts.js";
import { Versions } from "./versions.js";

const USUAL = ["champion", "default"];

const FIXED = "default";

const PARENT = ["Models", "#/models"];

/** Where the server has a version. @param {any} of */
const placeOf = ({ id, version }) => `/local/models/${encodeURIComponent(id)}/${encodeURIComponent(version)}`;

/** @param {ViewProps} props */
export default function Model({ params, query }) {
  const { id, version } = params;
  const found = useLoad(placeOf(params));
  const { data, reload } = found;
  if (!data) return html`<${Page} title=${id} parent=${PARENT}><${Loaded} ...${found} /><//>`;
  const tab = query.get("tab") ?? "overview";
  const heading = html`${data.display_name} <span class="muted">version ${data.version}</span>${" "}
    <${Aliases} names=${data.aliases} />`;
  const onDelete = (/** @type {boolean} */ isModelLeft) =>
    go(link(isModelLeft ? ["models", id, "default"] : ["models"]));
  const actions = html`
    <${Asking} key="aliases" verb="Edit aliases" dialog=${EditAliases} of=${{ model: data, onChange: reload }}
      disabled=${Boolean(data.aliases_problem)} />
    <${Asking} key="delete" verb="Delete version" dialog=${DeleteVersion} of=${{ model: data, onDelete }} />`;
  return html`<${Page} title=${`${data.display_name} version ${data.version}`} heading=${heading} parent=${PARENT}
      actions=${actions}>
    <${Loaded} ...${found} />
    ${[data.problem, data.aliases_problem]
      .filter(Boolean)
      .map((text) => html`<${Problem} key=${text} title="Damaged" error=${text} />`)}
    <${Tabs} label="Model" selected=${tab} tabs=${[
      { id: "overview", title: "Overview" },
      { id: "versions", title: "Versions", count: data.versions.length },
    ]} onSelect=${(each) => replace(link(["models", id, version], { tab: each }))}>
      ${tab === "versions" && html`<${Versions} model=${data} />`}
      ${tab === "overview" && html`<${Overview} model=${data} />`}
    <//>
  <//>`;
}

/** @param {{model: any}} props */
function Overview({ model }) {
  const metrics = metricsOf(model);
  const hasMetrics = metricNames([metrics]).length > 0;
  return html`
    ${hasMetrics && html`<${Figures} metrics=${metrics} />`}
    ${
      metrics === model.run_metrics &&
      html`<p class="muted">${
        hasMetrics ? "Metrics of the run. The version has no evaluation." : "No evaluation, and no metrics of a run."
      }</p>`
    }
    <${Section} title="Use this model"><div class="use"><${Use} model=${model} /></div><//>
    <div class="pair">
      <${Section} title="Origin"><${Values} values=${origin(model)} /><//>
      <${Section} title="Endpoints"><${Endpoints} rows=${model.endpoints} /><//>
    </div>
    ${
      model.evaluations.length > 0 &&
      html`<${Section} title="Evaluations">
        <${Table} isRegion caption="Evaluations" columns=${EVALUATION} rows=${model.evaluations} /><//>`
    }
    <div class="pair">
      <${Section} title="Container">
        ${
          model.container
            ? html`<${Values} values=${model.container} />`
            : html`<p class="muted">No serving container.</p>`
        }
      <//>
      <${Section} title="Labels">
        ${
          Object.keys(model.labels).length
            ? html`<${Values} values=${model.labels} />`
            : html`<p class="muted">No labels.</p>`
        }
      <//>
    </div>
    <${Section} title="Files"><${Files} model=${model} /><//>`;
}

/** How the model is called. @param {{model: any}} props */
function Use({ model }) {
  const { path, command, takes_images, problem, token } = model.use;
  const endpoint = model.endpoints[0]?.name ?? vertex("endpoints/ENDPOINT_ID").slice("/v1/".length);
  const request = `curl -s ${location.origin}/v1/${endpoint}:predict -H "Authorization: Bearer $(cat ${token})" \
  -H 'Content-Type: application/json' -d '{"instances": [{}]}'`;
  return html`
    ${path && html`<p>Its files are in</p><${Code} text=${path} />`}
    ${
      takes_images &&
      html`<p>Predict in a terminal; the command asks for an image file:</p><${Code} text=${command} />
        <${Try} model=${model} />`
    }
    ${
      !takes_images &&
      html`<p>${model.endpoints.length ? "Send" : "Deploy it to an endpoint, then send"} this request, with the
          instances that its container takes:</p>
        <${Code} text=${request} />
        ${problem && html`<p class="muted">It does not run here: ${problem}</p>`}`
    }`;
}

const MOST_BYTES = 10 * 2 ** 20;

/** A box that predicts an image. @param {{model: any}} props */
function Try({ model }) {
  const [image, setImage] = useState({ name: "", address: "" });
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [predict, { isBusy, error }] = useAction(async (/** @type {File | undefined} */ file) => {
    setFound(null);
    if (!file) throw new Error("No file was dropped; choose an image on this machine.");
    if (file.size > MOST_BYTES) throw new Error(`${file.name} is larger than 10 MiB.`);
    const address = await addressOf(file);
    setImage({ name: file.name, address });
    const [, b64] = address.split(",");
    setFound(await post(`${placeOf(model)}:predict`, { b64 }));
  });
  const pairs = /** @type {(number | [string, number])[]} */ (found?.probabilities ?? [])
    .map((each, index) => /** @type {[string, number]} */ (Array.isArray(each) ? each : [String(index), each]))
    .sort(([, one], [, other]) => other - one);
  return html`<${DropZone} id="image" aria-label="Image" accept="image/*" disabled=${isBusy}
      action=${isBusy ? "Predicting…" : "Choose an image"} onFiles=${([file]) => predict(file)}>
      ${image.address && html`<img src=${image.address} alt=${image.name} />`}
      <p><strong>${found ? found.label : "Drop an image here to predict it"}</strong></p>
      <p class="muted">The model runs on this machine, by the code of the prediction server. The first answer takes some
        seconds.</p>
    <//>
    ${error && html`<${Problem} title="No prediction" error=${error} />`}
    ${
      pairs.length > 0 &&
      html`<div class="short"><${Table} caption="Classes of the prediction" rows=${pairs} most=${5} columns=${[
        { title: "Class", isName: true, cell: ([name]) => html`<bdi>${name}</bdi>` },
        { title: "Probability", isNumber: true, cell: ([, share]) => percent(share) },
      ]} keyOf=${([name]) => name} /></div>`
    }`;
}

/** A file as a data: URL. @param {File} file @returns {Promise<string>} */
const addressOf = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read; is it a folder?`));
    reader.readAsDataURL(file);
  });

/** @param {ModelVersion} model */
const origin = (model) =>
  [
    ["Run", html`<${Run} id=${model.run} />`],
    ["Dataset", html`<${Fingerprints} all=${model.datasets} />`],
    ["Created", html`<${Time} at=${model.create_time} />`],
    ["Version description", model.version_description],
    ["Model description", model.description],
    ["Parameters", Object.keys(model.parameters).length && model.parameters],
  ].filter(([, value]) => value);

/** @param {{rows: any[]}} props */
function Endpoints({ rows }) {
  if (!rows.length) return html`<p class="muted">Not deployed.</p>`;
  return html`<${Table} caption="Endpoints" rows=${rows} columns=${[
    { title: "Endpoint", isName: true, cell: (row) => row.display_name || row.name },
    { title: "Deployed model", cell: (row) => html`<code>${row.deployed_model}</code>` },
    { title: "Traffic", isNumber: true, cell: (row) => `${row.traffic}%` },
  ]} />`;
}

/** @type {Column[]} */
const EVALUATION = [
  {
    title: "Evaluation",
    isName: true,
    cell: (row) => html`${row.name || row.id}${row.problem && html`<div class="small error">${row.problem}</div>`}`,
  },
  { title: "All metrics", cell: (row) => html`<${Value} value=${row.metrics} />` },
  { title: "Created", isWideOnly: true, cell: (row) => html`<${Time} at=${row.create_time} />` },
];

/** @param {{model: any}} props */
function Files({ model: { id, version, files, num_more, num_bytes } }) {
  if (!files.length) return html`<p class="muted">The registry has no files of this version.</p>`;
  const path = placeOf({ id, version });
  return html`
    <p class="actions"><a class="button" href=${`${path}/zip`} download>Download all</a>
      <span class="muted">${count(files.length + num_more)} files, ${bytes(num_bytes)}</span></p>
    <div class="short"><${Table} caption="Files" rows=${files} columns=${[
      {
        title: "File",
        isName: true,
        cell: ({ name }) => html`<a download
          href=${`${path}/file?file=${encodeURIComponent(name)}`}><code>${name || "the model"}</code></a>`,
      },
      { title: "Size", isNumber: true, cell: (row) => bytes(row.size) },
    ]} /></div>
    ${num_more > 0 && html`<p class="muted">and ${count(num_more)} more</p>`}`;
}

/** @param {Pick<ModelVersion, "id" | "version">} model */
const resource = ({ id, version }) => vertex(`models/${encodeURIComponent(id)}@${encodeURIComponent(version)}`);

/** @param {EditAliasesProps} props */
function EditAliases({ model, onChange, onClose }) {
  const [name, setName] = useState("");
  const [merge, { isBusy, error }] = useAction(async (/** @type {string} */ alias) => {
    await post(`${resource(model)}:mergeVersionAliases`, { versionAliases: [alias] });
    setName((now) => (now === alias ? "" : now));
    onChange();
  });
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    merge(name);
  };
  // Which version has an alias now.
  const holder = (/** @type {string} */ alias) => {
    const row = model.versions.find((/** @type {ModelVersion} */ each) => each.aliases.includes(alias));
    return row ? ` (now version ${row.version})` : "";
  };
  return html`<${Dialog} title=${`Aliases of version ${model.version}`} onClose=${onClose}>
    <p>An alias belongs to one version. If another version has it, it moves to this one.</p>
    <ul class="entries" aria-live="polite">
      ${model.aliases.map(
        (/** @type {string} */ each) => html`<li key=${each}>
          <span class="alias">${each}</span>
          ${
            each === FIXED
              ? html` <span class="muted small">can only be moved to another version</span>`
              : html`<button class="quiet" disabled=${isBusy} onClick=${() => merge(`-${each}`)}
                  aria-label=${`Remove ${each}`}>Remove</button>`
          }
        </li>`,
      )}
    </ul>
    <div class="actions">
      ${USUAL.filter((each) => !model.aliases.includes(each)).map(
        (each) => html`<button key=${each} disabled=${isBusy} onClick=${() => merge(each)}>
          Make ${each}${holder(each)}
        </button>`,
      )}
    </div>
    <form class="actions" onSubmit=${add}>
      <label for="alias">Another alias</label>
      <${Input} id="alias" value=${name} onText=${setName} />
      <button disabled=${isBusy || !name}>Set</button>
    </form>
    ${error && html`<${Problem} error=${error} />`}
  <//>`;
}

/** @param {DeleteVersionProps} props */
function DeleteVersion({ model, onDelete, onClose }) {
  const { id, display_name, version } = model;
  const isOnly = model.versions.length === 1;
  const erase = async () => {
    await remove(isOnly ? vertex(`models/${encodeURIComponent(id)}`) : `${resource(model)}:deleteVersion`);
    onDelete(!isOnly);
  };
  return html`<${Confirm} title=${isOnly ? `Delete the model ${display_name}?` : `Delete version ${version}?`}
      action=${isOnly ? "Delete model" : "Delete version"} onConfirm=${erase} onClose=${onClose}>
    <p>${
      isOnly
        ? "It is the only version, so the model is deleted with it."
        : `Version ${version} of ${display_name} is deleted with its evaluations
          and the registry's copy of its files.`
    } This cannot be undone.</p>
  <//>`;
}
