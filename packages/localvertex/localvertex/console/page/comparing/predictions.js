// The images on which runs differ, in groups by which runs are right.

import { useLoad } from "../server/load.js";
import { count, html, Loading, Notice, Problem, percent, Section, Table, useState } from "../ui/ui.js";
import { Images } from "./images.js";
import { Letter, letter } from "./letters.js";

/** @typedef {import("./images.js").Group} Group */

/** @param {{runs: any[], query: URLSearchParams}} props */
export function Predictions({ runs, query }) {
  const { data, error, reload } = useLoad(`/local/compare/predictions?${query}`);
  if (data && !data.sources.some(Boolean)) return null;
  const isComplete = data?.sources.every((/** @type {any} */ each) => each && !each.problem);
  return html`<${Section} title="Predictions">
    ${error && html`<${Problem} title="The predictions cannot be compared" error=${error} onRetry=${reload} />`}
    ${!data && !error && html`<${Loading} />`}
    ${data && html`<${Sources} runs=${runs} sources=${data.sources} />`}
    ${isComplete && data.num_common === 0 && html`<p class="muted">The runs have no images in common.</p>`}
    ${data?.groups.length > 0 && html`<${Groups} numCommon=${data.num_common} groups=${data.groups} />`}
  <//>`;
}

/** What keeps the runs from being compared. @param {{runs: any[], sources: any[]}} props */
function Sources({ runs, sources }) {
  const indices = runs.map((_, index) => index);
  const missing = indices.filter((index) => !sources[index]).map(letter);
  const damaged = indices.filter((index) => sources[index]?.problem);
  return html`
    ${missing.length > 0 && html`<p class="muted">No step of run ${missing.join(" or ")} wrote predictions.</p>`}
    ${damaged.map(
      (index) => html`<${Notice} kind="warn" title=${`The predictions of run ${letter(index)} cannot be read`}>
        ${sources[index].artifact} of ${sources[index].task}: ${sources[index].problem}
      <//>`,
    )}`;
}

/** Which runs are right, as text. @param {Group} group */
const describe = (group) =>
  group.is_right.map((isRight, index) => `${letter(index)} ${isRight ? "right" : "wrong"}`).join(", ");

/** @param {{numCommon: number, groups: Group[]}} props */
function Groups({ numCommon, groups }) {
  const [chosen, setChosen] = useState(groups.findIndex((group) => group.num_differing > 0));
  /** @type {import("../ui/table.js").Column[]} */
  const columns = [
    { title: "Runs", cell: Pattern, isName: true },
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

/** Which runs are right, in words and symbols. @param {Group} group */
function Pattern({ is_right }) {
  return html`<span class="pattern">
    ${is_right.map(
      (isRight, index) =>
        html`<span key=${index}><${Letter} index=${index} />${isRight ? "✓ right" : "✗ wrong"}</span>`,
    )}
  </span>`;
}
