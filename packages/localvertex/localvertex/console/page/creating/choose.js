// Where a new run comes from: a file dropped on the page, a file of the disk, or a compiled file of the folder.

import { useLoad } from "../server/load.js";
import { bytes, Empty, html, Problem, Section, Table, Time, useEffect, useRef, useState } from "../ui/ui.js";

const MAX_BYTES = 20 * 2 ** 20;

const TYPES = /** @type {const} */ (["dragover", "dragleave", "drop"]);

/** @typedef {{name: string, content: string}} Dropped */

/**
 * @typedef {object} ChooseProps
 * @property {(file: Dropped) => void} onDrop
 * @property {(problem: string) => void} onProblem - Called with why a file cannot be taken.
 * @property {string} view - The address that takes a compiled file of the folder.
 */

/** @param {ChooseProps} props */
export function Choose(props) {
  return html`<${DropZone} ...${props} /><${Files} view=${props.view} />`;
}

/** The drop zone, which is also a file input. @param {ChooseProps} props */
function DropZone({ onDrop, onProblem }) {
  const [isOver, setIsOver] = useState(false);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const take = async (/** @type {FileList | undefined | null} */ files) => {
    const problem = problemOf(files);
    if (problem || !files?.length) return onProblem(problem);
    try {
      onDrop({ name: files[0].name, content: await textOf(files[0]) });
    } catch (error) {
      // The decoder throws a TypeError.
      const reason = error instanceof TypeError ? "is not a compiled pipeline; expected JSON or YAML in UTF-8" : "";
      onProblem(`${files[0].name} ${reason || "cannot be read; is it a folder?"}`);
    }
  };
  useFileDrop(take, setIsOver);
  return html`
    <div class="drop ${isOver ? "over" : ""}">
      <p><strong>Drop a compiled pipeline here</strong></p>
      <p class="muted">The JSON or YAML file that you would upload to Vertex AI. It stays on this machine.</p>
      <input id="pipeline-file" class="hidden" type="file" accept=".json,.yaml,.yml" ref=${input} tabindex="-1"
        aria-label="Compiled pipeline" onChange=${(/** @type {any} */ event) => take(event.target.files)} />
      <button class="primary" onClick=${() => input.current?.click()}>Choose a file</button>
    </div>`;
}

/**
 * Take files that are dropped anywhere on the page; the browser would leave the page for such a file.
 * @param {(files: FileList) => void} onFiles
 * @param {(isOver: boolean) => void} [onOver] - Called while files are dragged over the page.
 */
export function useFileDrop(onFiles, onOver) {
  const newest = useRef(onFiles);
  newest.current = onFiles;
  useEffect(() => {
    /** @param {DragEvent} event */
    const listen = (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      onOver?.(event.type === "dragover");
      if (event.type === "drop") newest.current(event.dataTransfer.files);
    };
    for (const type of TYPES) addEventListener(type, listen);
    return () => {
      for (const type of TYPES) removeEventListener(type, listen);
    };
  }, []);
}

/** Why files cannot be taken; empty if they can. @param {FileList | undefined | null} files */
function problemOf(files) {
  if (!files?.length) return "No file was dropped; choose one on this machine.";
  if (files.length > 1) return `${files.length} files were dropped; expected one.`;
  if (files[0].size > MAX_BYTES) return `${files[0].name} is larger than 20 MiB; pipelines are much smaller.`;
  return "";
}

/** The text of a file; bytes that are not text are an error, and are never replaced. @param {File} file */
async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const encoding = { "255,254": "utf-16le", "254,255": "utf-16be" }[bytes.slice(0, 2).join()] ?? "utf-8";
  return new TextDecoder(encoding, { fatal: true }).decode(bytes);
}

/** The compiled files of the folder in which the server was started. @param {{view: string}} props */
function Files({ view }) {
  const { data, error } = useLoad("/local/files");
  if (error) return html`<${Problem} error=${error} />`;
  if (!data) return null;
  const columns = [
    { title: "File", isName: true, cell: (/** @type {CompiledFile} */ each) => fileLink(each, view) },
    { title: "Changed", cell: (/** @type {CompiledFile} */ each) => html`<${Time} at=${date(each)} />` },
    { title: "Size", isNumber: true, isWideOnly: true, cell: (/** @type {CompiledFile} */ each) => bytes(each.bytes) },
  ];
  return html`<${Section} title="Compiled files in ${data.folder}/">
    ${
      data.files.length
        ? html`<${Table} caption="Compiled files" columns=${columns} rows=${data.files} />`
        : html`<${Empty} title="No compiled files yet"><code>python compile.py</code><//>`
    }
  <//>`;
}

/** @param {CompiledFile} file @param {string} view */
const fileLink = (file, view) => html`<a href=${`${view}?file=${encodeURIComponent(file.path)}`}>${file.path}</a>`;

/** @param {CompiledFile} file */
const date = (file) => new Date(file.seconds * 1000).toISOString();
