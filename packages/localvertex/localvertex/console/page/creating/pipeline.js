// The pipeline that a form is about: one that the address names, or a file that the user drops or chooses.

import { useLoad, usePost } from "../server/server.js";
import { bytes, DropZone, Empty, html, Loaded, Problem, Section, Table, Time, useMemo, useState } from "../ui/ui.js";

const MAX_BYTES = 20 * 2 ** 20;

/** @typedef {{name: string, content: string}} Dropped */

/**
 * @param {URLSearchParams} query - Names an earlier `run` or a compiled `file`; empty until the user chooses one.
 * @param {string} view - The address without a query.
 * @returns {{overview: Overview | null, server: ServerInfo | null, key: string, choice: any, leave: () => void}} `key`:
 *   differs for each pipeline. `choice`: what is shown until a pipeline is chosen. `leave`: begins again.
 */
export function usePipeline(query, view) {
  const [dropped, setDropped] = useState(/** @type {Dropped | null} */ (null));
  const [problem, setProblem] = useState("");
  const named = ["run", "file"].find((kind) => query.get(kind)) ?? "";
  const value = query.get(named);
  const source = useMemo(() => (named ? { [named]: value } : dropped), [named, value, dropped]);
  const { answer, error, isCurrent } = usePost("/local/check", source);
  const overview = isCurrent && !error ? answer : null;
  const { data: server } = useLoad("/local/server");
  const take = (/** @type {Dropped | null} */ file, text = "") => {
    if (named) location.hash = view;
    setDropped(file);
    setProblem(text);
  };
  const read = async (/** @type {FileList} */ files) => {
    const [file] = files;
    if (!file) return take(null, "No file was dropped; choose one on this machine.");
    if (files.length > 1) return take(null, `${files.length} files were dropped; expected one.`);
    if (file.size > MAX_BYTES) return take(null, `${file.name} is larger than 20 MiB; pipelines are much smaller.`);
    try {
      take({ name: file.name, content: await textOf(file) });
    } catch (error) {
      // The decoder throws a TypeError.
      const reason = error instanceof TypeError ? "is not a compiled pipeline; expected JSON or YAML in UTF-8" : "";
      take(null, `${file.name} ${reason || "cannot be read; is it a folder?"}`);
    }
  };
  const failed = problem || (isCurrent && error);
  const choice = html`
    ${failed && html`<${Problem} title="This file cannot be used" error=${failed} />`}
    ${source && !overview && !failed && html`<${Loaded} />`}
    ${
      !overview &&
      (!named || failed) &&
      html`<${DropZone} id="pipeline-file" aria-label="Compiled pipeline" accept=".json,.yaml,.yml" look="primary"
          action="Choose a file" onFiles=${read}>
        <p><strong>Drop a compiled pipeline here</strong></p>
        <p class="muted">The JSON or YAML file that you would upload to Vertex AI. It stays on this machine.</p>
      <//><${Files} view=${view} />`
    }`;
  return { overview, server, key: JSON.stringify(source), choice, leave: () => take(null) };
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
  return html`<${Section} title="Compiled files in ${data.folder}/">
    ${
      data.files.length
        ? html`<${Table} caption="Compiled files" rows=${data.files} columns=${[
            {
              title: "File",
              isName: true,
              cell: ({ path }) => html`<a href=${`${view}?file=${encodeURIComponent(path)}`}>${path}</a>`,
            },
            {
              title: "Changed",
              cell: ({ seconds }) => html`<${Time} at=${new Date(seconds * 1000).toISOString()} />`,
            },
            { title: "Size", isNumber: true, isWideOnly: true, cell: (each) => bytes(each.bytes) },
          ]} />`
        : html`<${Empty} title="No compiled file yet" />`
    }
  <//>`;
}
