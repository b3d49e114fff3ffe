// One artifact: its content where the page can show it, its metadata, and its files to download.

import { shown } from "../logs/visible_text.js";
import { useLoad } from "../server/load.js";
import { bytes, count, Frame, figure, html, Loading, useState, Values } from "../ui/ui.js";
import { markup } from "./markup.js";

const MOST_IMAGES = 12;

/** @param {any} props */
export function Artifact({ run, task, side, name, index, artifact, isOpen }) {
  const [open, setOpen] = useState(isOpen);
  const place = { task, side, name, index: String(index) };
  const { data, error } = useLoad(open ? `/local/runs/${run}/artifact?${new URLSearchParams(place)}` : null);
  /** @param {string} file @param {boolean} isDownload */
  const href = (file, isDownload) =>
    `/local/runs/${run}/artifact/file?${new URLSearchParams({ ...place, file, ...(isDownload && { download: "" }) })}`;
  const kind = artifact.type?.schemaTitle ?? "";
  const toggle = (/** @type {any} */ event) => setOpen(event.target.open);
  return html`<details class="artifact" open=${open} onToggle=${toggle}>
    <summary><bdi>${name}</bdi> <span class="muted">${kind}</span></summary>
    ${error && html`<p class="error">${error.message}</p>`}
    ${open && !data && !error && html`<${Loading} />`}
    ${data && html`<${Content} view=${data} href=${href} />`}
  </details>`;
}

/** @param {{view: any, href: (file: string, isDownload: boolean) => string}} props */
function Content({ view, href }) {
  const images = view.files.filter((/** @type {any} */ each) => each.is_image).slice(0, MOST_IMAGES);
  const metadata = Object.entries(view.metadata).map(([name, value]) => [
    name,
    Number.isInteger(value) || typeof value !== "number" ? value : figure(value),
  ]);
  return html`
    ${view.is_page && html`<${Frame} src=${href("", false)} title=${`Page ${view.name}`} />`}
    ${view.markdown && html`<div class="markdown">${markup(view.markdown)}</div>`}
    ${view.matrix && html`<${Matrix} matrix=${view.matrix} />`}
    ${view.roc && html`<${Roc} roc=${view.roc} />`}
    ${
      images.length > 0 &&
      html`<div class="images">${images.map(
        (/** @type {any} */ each) =>
          html`<img key=${each.name} src=${href(each.name, false)} alt=${each.name || view.name} loading="lazy" />`,
      )}</div>`
    }
    ${view.text && html`<${Preview} text=${view.text} name=${view.name} />`}
    ${view.note && !metadata.length && !view.matrix && !view.roc && html`<p class="muted">${view.note}</p>`}
    ${metadata.length > 0 && html`<${Values} values=${metadata} />`}
    <${Files} view=${view} href=${href} />`;
}

/** The beginning of a text file. @param {{text: {text: string, is_cut: boolean}, name: string}} props */
const Preview = ({ text: { text, is_cut }, name }) => html`<div class="code">
  <pre tabindex="0" role="region" aria-label=${`Content of ${name}`}>${shown(text)}</pre>
  ${is_cut && html`<p class="small muted">This is the beginning of the file; download it to see all of it.</p>`}
</div>`;

/** The files that are not listed, in words. @param {any} view */
const others = ({ num_more, has_uncounted }) =>
  `and ${has_uncounted ? "at least " : ""}${count(num_more)} more ${num_more === 1 ? "file" : "files"}`;

/** The files with their sizes. @param {{view: any, href: (file: string, isDownload: boolean) => string}} props */
function Files({ view, href }) {
  const place = view.link
    ? html`<a href=${view.link} rel="noreferrer" target="_blank">${view.uri}</a>`
    : html`<bdi>${view.uri}</bdi>`;
  return html`<p class="place small muted">${place}</p>
    ${
      view.files.length > 0 &&
      html`<ul class="files">
      ${view.files.map(
        (/** @type {any} */ each) => html`<li key=${each.name}>
        <a href=${href(each.name, true)} download><bdi>${each.name || view.uri.split("/").at(-1)}</bdi></a>
        <span class="muted">${bytes(each.size)}</span>
      </li>`,
      )}
      ${view.num_more > 0 && html`<li class="muted">${others(view)}</li>`}
    </ul>`
    }`;
}

/** A row for each true class, a column for each predicted one. @param {{matrix: any}} props */
function Matrix({ matrix }) {
  /** @type {string[]} */
  const names = matrix.names;
  return html`<figure class="table" role="region" aria-label="Confusion matrix" tabindex="0">
    <figcaption>Confusion matrix: a row per true class, a column per predicted one</figcaption><table class="matrix">
    <thead><tr><td></td>${names.map((name, index) => html`<th key=${index} scope="col">${name}</th>`)}</tr></thead>
    <tbody>${matrix.rows.map(
      (/** @type {any[]} */ row, /** @type {number} */ index) => html`<tr key=${index}>
      <th scope="row">${names[index]}</th>
      ${row.map((cell, column) => html`<td key=${column} class=${`shade${cell.shade}`}>${figure(cell.value)}</td>`)}
    </tr>`,
    )}</tbody>
  </table></figure>`;
}

/** @param {{roc: any}} props */
function Roc({ roc }) {
  const text = `ROC of ${roc.num_points} points, area ${roc.area.toFixed(4)}`;
  return html`<figure class="roc"><svg viewBox="-34 -8 246 246" width="246" height="246" role="img" aria-label=${text}>
    <path class="box" d="M0 0H200V200H0Z" /><path class="diagonal" d="M0 200L200 0" /><polyline points=${roc.points} />
    <text x="100" y="230" text-anchor="middle">false positive rate</text>
    <text x="-100" y="-22" text-anchor="middle" transform="rotate(-90)">recall</text>
    <text x="0" y="214" text-anchor="middle">0</text><text x="200" y="214" text-anchor="middle">1</text>
    <text x="-8" y="204" text-anchor="end">0</text><text x="-8" y="4" text-anchor="end">1</text>
  </svg><figcaption>${text}</figcaption></figure>`;
}
