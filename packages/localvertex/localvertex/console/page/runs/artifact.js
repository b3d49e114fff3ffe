// One artifact: its content where the page can show it, its metadata, and its files to download.

import { shown } from "../logs/text.js";
import { beside, report } from "../server/report.js";
import { useLoad } from "../server/server.js";
import { bytes, Frame, figure, html, Loaded, plural, useMemo, useState, Values } from "../ui/ui.js";

const [MOST_IMAGES, MOST_CLASSES, MOST_POINTS] = [12, 100, 2000];

/** @param {ArtifactProps} props */
export function Artifact({ run, place, artifact, isOpen }) {
  const [open, setOpen] = useState(isOpen);
  const path = `/local/runs/${run}/artifact`;
  const { data = artifact.view, error } = useLoad(open && !report ? `${path}?${new URLSearchParams(place)}` : null);
  /** @param {string} file @param {boolean} [isDownload] */
  const href = (file, isDownload) =>
    report
      ? beside(...[data.place, file].filter(Boolean))
      : `${path}/file?${new URLSearchParams({ ...place, file, ...(isDownload && { download: "" }) })}`;
  return html`<details class="card artifact" open=${open} onToggle=${(event) => setOpen(event.target.open)}>
    <summary><bdi>${place.name}</bdi> <span class="muted">${artifact.type?.schemaTitle}</span></summary>
    ${error && html`<p class="error">${error.message}</p>`}
    ${open && !error && html`<${Loaded} data=${data}>${() => html`<${Content} view=${data} href=${href} />`}<//>`}
  </details>`;
}

/** @param {ContentProps} props */
function Content({ view, href }) {
  // A report has the text of pages; images stay in their files.
  const images = report
    ? []
    : view.files.filter((/** @type {ArtifactFile} */ each) => each.is_image).slice(0, MOST_IMAGES);
  // A page in an address of more than 2 MiB would not be shown.
  const page = useMemo(
    () =>
      report ? view.page && URL.createObjectURL(new Blob([view.page], { type: "text/html;charset=utf-8" })) : href(""),
    [view.page],
  );
  const isClassified = view.kind === "system.ClassificationMetrics";
  const matrix = isClassified && matrixIn(view.metadata.confusionMatrix);
  const roc = isClassified && rocIn(view.metadata.confidenceMetrics);
  const drawn = [matrix && "confusionMatrix", roc && "confidenceMetrics"];
  const rest = Object.entries(view.metadata).filter(([name, value]) => !drawn.includes(name) && (value ?? "") !== "");
  const metadata = rest.map(([name, value]) => [
    name,
    Number.isInteger(value) || typeof value !== "number" ? value : figure(value),
  ]);
  return html`
    ${view.is_page && page && html`<${Frame} src=${page} title=${`Page ${view.name}`} />`}
    ${view.is_page && !page && html`<p class="muted">It is too large for this report.</p>`}
    ${view.markdown && html`<div class="markdown">${markup(view.markdown)}</div>`}
    ${matrix && html`<${Matrix} matrix=${matrix} />`}
    ${roc && html`<${Roc} roc=${roc} />`}
    <div class="images">${images.map(
      (/** @type {ArtifactFile} */ { name }) =>
        html`<img key=${name} src=${href(name)} alt=${name || view.name} loading="lazy" />`,
    )}</div>
    ${view.text && html`<${Preview} text=${view.text} name=${view.name} />`}
    ${view.note && !metadata.length && !matrix && !roc && html`<p class="muted">${view.note}</p>`}
    ${metadata.length > 0 && html`<${Values} values=${metadata} />`}
    <${Files} view=${view} href=${href} />`;
}

/** The beginning of a text file. @param {PreviewProps} props */
const Preview = ({ text: { text, is_cut }, name }) => html`<div class="code">
  <pre tabindex="0" role="region" aria-label=${`Content of ${name}`}>${shown(text)}</pre>
  ${is_cut && html`<p class="small muted">This is the beginning of the file; download it to see all of it.</p>`}
</div>`;

/** @param {FilesProps} props */
function Files({ view: { link, uri, files, num_more, place: inner }, href }) {
  const hasFiles = !report || inner !== null;
  const place = link ? html`<a href=${link} rel="noreferrer" target="_blank">${uri}</a>` : html`<bdi>${uri}</bdi>`;
  return html`<p class="place small muted">${place}</p>
    <ul class="files">
      ${files.map(
        (/** @type {ArtifactFile} */ { name, size }) => html`<li key=${name}>
          <${hasFiles ? "a" : "span"} href=${hasFiles && href(name, true)} download=${!report}>
            <bdi>${name || uri.split("/").at(-1)}</bdi><//>
          <span class="muted">${bytes(size)}</span>
        </li>`,
      )}
      ${num_more > 0 && html`<li class="muted">and ${plural(num_more, "more file")}</li>`}
    </ul>`;
}

/**
 * Read a confusion matrix; null when it is missing, too large or malformed.
 * @param {any} value @returns {{names: string[], rows: number[][]} | null}
 */
export function matrixIn(value) {
  if (!Array.isArray(value?.annotationSpecs) || !Array.isArray(value.rows)) return null;
  const names = /** @type {any[]} */ (value.annotationSpecs).map((each) => String(each?.displayName));
  const rows = /** @type {any[]} */ (value.rows).map((each) => each?.row);
  const isSound = (/** @type {unknown} */ row) =>
    Array.isArray(row) && row.length === names.length && row.every(Number.isFinite);
  const isSquare = names.length > 0 && names.length <= MOST_CLASSES && rows.length === names.length;
  return isSquare && rows.every(isSound) ? { names, rows } : null;
}

/**
 * Read the points of a ROC, false positive rate and recall; null when they are missing, too many or malformed.
 * @param {any} value @returns {[number, number][] | null}
 */
export function rocIn(value) {
  if (!Array.isArray(value) || value.length < 2 || value.length > MOST_POINTS) return null;
  /** @type {[number, number][]} */
  const points = value.map((each) => [each?.falsePositiveRate, each?.recall]);
  const isSound = points.flat().every((each) => Number.isFinite(each) && each >= 0 && each <= 1);
  return isSound ? points.sort(([x, y], [otherX, otherY]) => x - otherX || y - otherY) : null;
}

/** How dark a number of a matrix is: from 0 for none of its row to 4 for all of it. */
function shade(/** @type {number} */ value, /** @type {number[]} */ row) {
  const total = row.reduce((sum, each) => sum + each, 0);
  return value <= 0 || total <= 0 ? 0 : Math.max(1, Math.min(4, Math.round((4 * value) / total)));
}

/** A row for each true class, a column for each predicted one. @param {MatrixProps} props */
function Matrix({ matrix }) {
  const { names, rows } = matrix;
  return html`<figure class="table" aria-label="Confusion matrix" tabindex="0">
    <figcaption>Confusion matrix: a row per true class, a column per predicted one</figcaption><table class="matrix">
    <thead><tr><td></td>${names.map((name, index) => html`<th key=${index} scope="col">${name}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (row, index) => html`<tr key=${index}>
      <th scope="row">${names[index]}</th>
      ${row.map(
        (value, column) => html`<td key=${column} style=${{ "--shade": shade(value, row) }}>${figure(value)}</td>`,
      )}
    </tr>`,
    )}</tbody>
  </table></figure>`;
}

/** @param {RocProps} props */
function Roc({ roc }) {
  const area = roc.slice(1).reduce((sum, [x, y], at) => sum + ((x - roc[at][0]) * (y + roc[at][1])) / 2, 0);
  const text = `ROC of ${roc.length} points, area ${area.toFixed(4)}`;
  const points = roc.map(([x, y]) => `${(200 * x).toFixed(1)},${(200 - 200 * y).toFixed(1)}`).join(" ");
  return html`<figure class="roc"><svg viewBox="-34 -8 246 246" width="246" height="246" role="img" aria-label=${text}>
    <path class="box" d="M0 0H200V200H0Z" /><path class="diagonal" d="M0 200L200 0" /><polyline points=${points} />
    <text x="100" y="230" text-anchor="middle">false positive rate</text>
    <text x="-100" y="-22" text-anchor="middle" transform="rotate(-90)">recall</text>
    <text x="0" y="214" text-anchor="middle">0</text><text x="200" y="214" text-anchor="middle">1</text>
    <text x="-8" y="204" text-anchor="end">0</text><text x="-8" y="4" text-anchor="end">1</text>
  </svg><figcaption>${text}</figcaption></figure>`;
}

/** What the HTML of a Markdown text is made of; all else, and each attribute but https links, is left out. */
const TAGS = new Set(
  "P H1 H2 H3 H4 H5 H6 UL OL LI A EM STRONG S CODE PRE BLOCKQUOTE HR BR TABLE THEAD TBODY TR TH TD".split(" "),
);

/** Return what an HTML text shows, as elements of this page; nothing in it is run or loaded. @param {string} text */
const markup = (text) => children(new DOMParser().parseFromString(text, "text/html").body);

/** @param {Node} parent @returns {any[]} */
const children = (parent) =>
  Array.from(parent.childNodes, (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.textContent;
    if (!(node instanceof Element) || !TAGS.has(node.tagName)) return children(node);
    const tag = node.tagName.toLowerCase();
    const href = node.getAttribute("href") ?? "";
    if (tag === "a" && href.startsWith("https://"))
      return html`<a href=${href} rel="noreferrer" target="_blank">${children(node)}</a>`;
    if (["hr", "br"].includes(tag)) return html`<${tag} />`;
    return html`<${tag === "a" ? "span" : tag}>${children(node)}<//>`;
  });
