// The images on which runs differ, in groups by which runs are right.
import { html, useState } from "../../html.js";
import { useLoad } from "../../load.js";
import { Loading, Section } from "../../ui/page.js";
import { Notice, Problem } from "../../ui/problem.js";
import { Table } from "../../ui/table.js";
import { Letter, letter } from "./letters.js";

const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });
const COUNT = new Intl.NumberFormat("en");

/** @param {{runs: any[], query: URLSearchParams}} props */
export function Predictions({ runs, query }) {
  const { data, error, reload } = useLoad(`/local/compare/predictions?${query}`);
  if (error)
    return html`<${Section} title="Predictions"><${Problem} title="The predictions cannot be compared" error=${error} onRetry=${reload} /><//>`;
  if (!data) return html`<${Section} title="Predictions"><${Loading} /><//>`;
  if (!data.sources.some(Boolean)) return null;
  return html`<${Section} title="Predictions">
    <${Sources} runs=${runs} sources=${data.sources} />
    ${data.groups.length > 0 && html`<${Groups} runs=${runs} numCommon=${data.num_common} groups=${data.groups} />`}
    ${data.sources.every((/** @type {any} */ each) => each && !each.problem) && data.num_common === 0 && html`<p class="muted">The runs have no images in common.</p>`}
  <//>`;
}

/** What keeps the runs from being compared. @param {{runs: any[], sources: any[]}} props */
function Sources({ runs, sources }) {
  const missing = runs.map((_, index) => index).filter((index) => !sources[index]);
  const damaged = runs.map((_, index) => index).filter((index) => sources[index]?.problem);
  return html`
    ${missing.length > 0 && html`<p class="muted">No step of ${missing.map((index) => html`<${Letter} index=${index} /> `)} wrote predictions.</p>`}
    ${damaged.map(
      (index) => html`<${Notice} kind="warn" title=${`The predictions of run ${letter(index)} cannot be read`}>
        ${sources[index].artifact} of ${sources[index].task}: ${sources[index].problem}
      <//>`,
    )}`;
}

/** @param {{runs: any[], numCommon: number, groups: any[]}} props */
function Groups({ runs, numCommon, groups }) {
  const first = groups.findIndex((group) => group.num_differing > 0);
  const [chosen, setChosen] = useState(first);
  const describe = (/** @type {any} */ group) => {
    const parts = group.is_right.map(
      (/** @type {boolean} */ isRight, /** @type {number} */ index) =>
        `${letter(index)} ${isRight ? "right" : "wrong"}`,
    );
    return parts.join(", ");
  };
  const columns = [
    { title: "Runs", cell: (/** @type {any} */ group) => html`<${Pattern} group=${group} />`, isName: true },
    {
      title: "Images",
      cell: (/** @type {any} */ group) =>
        html`${COUNT.format(group.num_images)} <span class="muted">${PERCENT.format(group.num_images / numCommon)}</span>`,
      isNumber: true,
    },
    {
      title: "Different predictions",
      cell: (/** @type {any} */ group) => COUNT.format(group.num_differing),
      isNumber: true,
    },
    {
      title: "",
      cell: (/** @type {any} */ group) =>
        group.num_differing > 0 &&
        html`<button class="quiet" aria-pressed=${groups[chosen] === group} aria-label=${`Show images: ${describe(group)}`}
          onClick=${() => setChosen(groups.indexOf(group))}>Show</button>`,
    },
  ];
  const group = groups[chosen];
  return html`
    <p class="muted">${COUNT.format(numCommon)} images are in the predictions of all runs.</p>
    <${Table} caption="Images by which runs are right" columns=${columns} rows=${groups} keyOf=${describe} />
    ${group && html`<${Images} key=${describe(group)} title=${describe(group)} group=${group} />`}`;
}

/** Which runs are right, in words and symbols. @param {{group: any}} props */
function Pattern({ group }) {
  return html`<span class="pattern">
    ${group.is_right.map(
      (/** @type {boolean} */ isRight, /** @type {number} */ index) =>
        html`<span key=${index}><${Letter} index=${index} /> ${isRight ? "✓ right" : "✗ wrong"}</span>`,
    )}
  </span>`;
}

/** @param {{title: string, group: any}} props */
function Images({ title, group }) {
  const { images, num_differing } = group;
  return html`<div aria-live="polite">
    <h3 class="group">${title}${images.length < num_differing && html`<span class="muted"> · the ${images.length} most confident mistakes of ${COUNT.format(num_differing)}</span>`}</h3>
    <ul class="images">${images.map((/** @type {any} */ image) => html`<${Image} key=${`${image.split} ${image.file_name}`} image=${image} />`)}</ul>
  </div>`;
}

/** @param {{image: any}} props */
function Image({ image }) {
  return html`<li>
    <div class="picture">
      ${image.image ? html`<img src=${image.image} alt=${image.file_name} loading="lazy" />` : html`<span class="small muted">image not stored</span>`}
    </div>
    <div class="facts">
      <p class="small name" title=${image.file_name}><bdi>${image.file_name}</bdi></p>
      <p class="small muted">label <bdi>${image.labels.join(" or ")}</bdi>${image.split && html` · ${image.split}`}</p>
      ${image.predictions.map(
        (
          /** @type {any} */ each,
          /** @type {number} */ index,
        ) => html`<p key=${index} class="small ${each.is_right ? "right" : "wrong"}">
          <${Letter} index=${index} /> ${each.is_right ? "✓" : "✗"} <bdi>${each.predicted}</bdi>
          <span class="muted">${PERCENT.format(each.probability)}</span>
          <span class="hidden">${each.is_right ? "right" : "wrong"}</span>
        </p>`,
      )}
    </div>
  </li>`;
}
