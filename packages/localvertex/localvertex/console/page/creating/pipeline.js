// The pipeline that a form is about: one that the address names, or a file that the user chooses.
import { useLoad, usePost } from "../server/load.js";
import { html, Loading, Problem, useMemo, useState } from "../ui/ui.js";
import { Choose } from "./choose.js";

/** @typedef {import("./choose.js").Dropped} Dropped */

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
  const failed = problem || (isCurrent && error);
  const choice = html`
    ${failed && html`<${Problem} title="This file cannot be used" error=${failed} />`}
    ${source && !overview && !failed && html`<${Loading} />`}
    ${
      !overview &&
      (!named || failed) &&
      html`<${Choose} view=${view} onDrop=${take} onProblem=${(/** @type {string} */ text) => take(null, text)} />`
    }`;
  return { overview, server, key: JSON.stringify(source), choice, leave: () => take(null) };
}
