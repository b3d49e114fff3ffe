// The pipeline that a form is about: one that the address names, or a file that the user chooses.
import { post } from "../server/api.js";
import { useLoad } from "../server/load.js";
import { html, Loading, Problem, useEffect, useState } from "../ui/ui.js";
import { Choose } from "./choose.js";

/** @typedef {import("./choose.js").Dropped} Dropped */

/**
 * @param {URLSearchParams} query - Names an earlier `run` or a compiled `file`; empty until the user chooses one.
 * @param {string} view - The address without a query.
 * @returns {{overview: Overview | null, server: ServerInfo | null, key: string, choice: any, leave: () => void}} `key`:
 *   another one is another pipeline. `choice`: what is shown until there is one. `leave` begins again.
 */
export function usePipeline(query, view) {
  const [dropped, setDropped] = useState(/** @type {Dropped | null} */ (null));
  const [problem, setProblem] = useState("");
  const named = ["run", "file"].find((kind) => query.get(kind)) ?? "";
  const source = named ? { [named]: query.get(named) } : dropped;
  const { overview, error } = useOverview(source);
  const { data: server } = useLoad("/local/server");
  const take = (/** @type {Dropped | null} */ file, text = "") => {
    if (named) location.hash = view;
    setDropped(file);
    setProblem(text);
  };
  const failed = problem || error;
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

/**
 * What a pipeline is, with its form; read again when another one is chosen.
 * @param {object | null} source
 * @returns {{overview: Overview | null, error: Error | null}}
 */
function useOverview(source) {
  const [found, setFound] = useState({ overview: /** @type {any} */ (null), error: /** @type {any} */ (null), of: "" });
  const key = source ? JSON.stringify(source) : "";
  useEffect(() => {
    let isCurrent = true;
    const keep = (/** @type {object} */ state) =>
      isCurrent && setFound({ overview: null, error: null, ...state, of: key });
    if (source)
      post("/local/check", source).then(
        (overview) => keep({ overview }),
        (error) => keep({ error }),
      );
    return () => {
      isCurrent = false;
    };
  }, [key]);
  return found.of === key && key ? found : { overview: null, error: null };
}
