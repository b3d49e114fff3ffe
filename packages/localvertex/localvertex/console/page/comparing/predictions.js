// The images on which runs differ, in groups by which runs are right.

import { useLoad } from "../server/server.js";
import { count, html, Loaded, Notice, percent, Section, Table, useState } from "../ui/ui.js";
import { Letter, letter } from "./letters.js";

const NUM_SHOWN = 24;

/**
 * @typedef {object} Group
 * @property {boolean[]} is_right - For each run.
 * @property {number} num_images
 * @property {number} num_differing - Images for which the predictions of the runs differ.
 * @property {any[]} images
 */

/** @param {{runs: any[], query: URLSearchParams}} props */
export function Predictions({ runs, query }) {
  const answer = useLoad(`/local/compare/predictions?${query}`);
  if (answer.data && !answer.data.sources.some(Boolean)) return null;
  return html`<${Section} title="Predictions">
    <${Loaded} title="The predictions cannot be compared" ...${answer}>${(data) => {
      const { sources, num_common, groups } = data;
      const isComplete = sources.every((/** @type {any} */ each) => each && !each.problem);
      return html`
        <${Sources} runs=${runs} sources=${sources} />
        ${isComplete && num_common === 0 && html`<p class="muted">The runs have no images in common.</p>`}
        ${groups.length > 0 && html`<${Groups} numCommon=${num_common} groups=${groups} />`}`;
    }}<//>
  <//>`;
}

/** What keeps the runs from being compared. @param {{runs: any[], sources: any[]}} props */
function Sources({ runs, sources }) {
  const indices = runs.map((_, index) => index);
  const missing = indices.filter((index) => !sources[index]).map(letter);
  return html`
    ${missing.length > 0 && html`<p class="muted">No step of run ${missing.join(" or ")} wrote predictions.</p>`}
    ${indices
      .filter((index) => sources[index]?.problem)
      .map(
        (index) => html`<${Notice} kind="warn" title=${`The predictions of run ${letter(index)} cannot be read`}>
          ${sources[index].artifact} of ${sources[index].task}: ${sources[index].problem}
        <//>`,
      )}`;
}

/** @param {Group} group */
const describe = (group) =>
  group.is_right.map((isRight, index) => `${letter(index)} ${isRight ? "right" : "wrong"}`).join(", ");

/** @param {{numCommon: number, groups: Group[]}} props */
function Groups({ numCommon, groups }) {
  const [chosen, setChosen] = useState(groups.findIndex((group) => group.num_differing > 0));
  /** @type {Column[]} */
  const columns = [
    {
      title: "Runs",
      isName: true,
      cell: ({ is_right }) =>
        html`<span class="pattern">${is_right.map(
          (/** @type {boolean} */ isRight, /** @type {number} */ index) =>
            html`<span key=${index}><${Letter} index=${index} />${isRight ? "✓ right" : "✗ wrong"}</span>`,
        )}</span>`,
    },
    { title: "Images", cell: (group) => count(group.num_images), isNumber: true },
    { title: "Share", cell: (group) => percent(group.num_images / numCommon), isNumber: true, isWideOnly: true },
    { title: "Differ", cell: (group) => count(group.num_differing), isNumber: true },
    {
      title: "",
      heading: html`<span class="hidden">Images</span>`,
      cell: (group) =>
        group.num_differing > 0 &&
        html`<button class="quiet" aria-pressed=${groups[chosen] === group}
          aria-label=${`Show images: ${describe(group)}`} onClick=${() => setChosen(groups.indexOf(group))}>
          Show
        </button>`,
    },
  ];
  const group = groups[chosen];
  return html`
    <p class="muted">
      ${count(numCommon)} images are in the predictions of all runs. Differ: images that the runs predict differently.
    </p>
    <${Table} isRegion caption="Images by which runs are right" columns=${columns} rows=${groups} />
    <div aria-live="polite">
      ${group && html`<${Images} key=${describe(group)} title=${describe(group)} group=${group} />`}
    </div>`;
}

/** Images with their label and what each run predicts. @param {{title: string, group: Group}} props */
function Images({ title, group: { images, num_differing } }) {
  const [limit, setLimit] = useState(NUM_SHOWN);
  const shown = images.slice(0, limit);
  const rest = num_differing > shown.length && `the ${shown.length} most confident mistakes of ${num_differing}`;
  return html`
    <h3 class="group">${title}${rest && html`<span class="muted"> · ${rest}</span>`}</h3>
    <ul class="images">
      ${shown.map((image) => html`<${Image} key=${`${image.split} ${image.file_name}`} image=${image} />`)}
    </ul>
    ${limit < images.length && html`<button class="more" onClick=${() => setLimit(images.length)}>Show more</button>`}`;
}

/** @param {{image: any}} props */
function Image({ image: { file_name, image, labels, split, predictions } }) {
  return html`<li class="card">
    <div class="thumbnail">
      ${image ? html`<img src=${image} alt=${file_name} />` : html`<span class="small muted">no image</span>`}
    </div>
    <div class="facts">
      <p class="name" title=${file_name}><bdi>${file_name}</bdi></p>
      <p class="small muted">label <bdi>${labels.join(" or ")}</bdi>${split && ` · ${split}`}</p>
      ${predictions.map(
        (/** @type {any} */ { is_right, predicted, probability }, /** @type {number} */ index) =>
          html`<p key=${index} class="small predicted">
            <${Letter} index=${index} />
            <span>${is_right ? "✓" : "✗"}<span class="hidden">${is_right ? "right" : "wrong"}</span></span>
            <bdi>${predicted}</bdi>
            <span class="muted">${percent(probability)}</span>
          </p>`,
      )}
    </div>
  </li>`;
}
