// Images with their label and what each run predicts.
import { html, percent, useState } from "../ui/ui.js";
import { Letter } from "./letters.js";

const NUM_SHOWN = 24;

/**
 * @typedef {object} Group
 * @property {boolean[]} is_right - For each run.
 * @property {number} num_images
 * @property {number} num_differing - Those of which the runs do not predict the same.
 * @property {any[]} images
 */

/** @param {{title: string, group: Group}} props */
export function Images({ title, group }) {
  const { images, num_differing } = group;
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
function Image({ image }) {
  const { file_name, labels, split, predictions } = image;
  return html`<li>
    <div class="thumbnail">
      ${image.image && html`<img src=${image.image} alt=${file_name} />`}
      ${!image.image && html`<span class="small muted">no image</span>`}
    </div>
    <div class="facts">
      <p class="name" title=${file_name}><bdi>${file_name}</bdi></p>
      <p class="small muted">label <bdi>${labels.join(" or ")}</bdi>${split && ` · ${split}`}</p>
      ${predictions.map(
        (/** @type {any} */ each, /** @type {number} */ index) =>
          html`<p key=${index} class="small predicted">
            <${Letter} index=${index} />
            <span>${each.is_right ? "✓" : "✗"}<span class="hidden">${each.is_right ? "right" : "wrong"}</span></span>
            <bdi>${each.predicted}</bdi>
            <span class="muted">${percent(each.probability)}</span>
          </p>`,
      )}
    </div>
  </li>`;
}
