// Create a run: choose a compiled pipeline, see its checks, fill in its form, start it.
import { post } from "../server/api.js";
import { useLoad } from "../server/load.js";
import { html, useEffect, useState } from "../ui/html.js";
import { Loading, Page } from "../ui/page.js";
import { Problem } from "../ui/problem.js";
import { Choose } from "./choose.js";
import { Draft } from "./draft.js";

/** @param {{query: URLSearchParams}} props */
export default function Create({ query }) {
  const [dropped, setDropped] = useState(/** @type {{name: string, content: string} | null} */ (null));
  const [problem, setProblem] = useState("");
  const named = ["run", "file"].find((kind) => query.get(kind)) ?? "";
  const source = named ? { [named]: query.get(named) } : dropped;
  const { overview, error } = useOverview(source);
  const { data: server } = useLoad("/local/server");
  const take = (/** @type {{name: string, content: string} | null} */ file, text = "") => {
    if (named) location.hash = "#/create";
    setDropped(file);
    setProblem(text);
  };
  const parent = overview ? { title: "Choose another pipeline", href: "#/create" } : undefined;
  const title = overview ? `Create run: ${overview.pipeline}` : "Create run";
  const failed = problem || error;
  return html`<div onClickCapture=${(/** @type {any} */ event) => event.target.closest?.("a.parent") && take(null)}>
    <${Page} title=${title} parent=${parent}>
      ${failed && html`<${Problem} title="This file cannot be used" error=${failed} />`}
      ${source && !overview && !failed && html`<${Loading} />`}
      ${
        !overview &&
        (!named || failed) &&
        html`<${Choose} onDrop=${take}
        onProblem=${(/** @type {string} */ text) => take(null, text)} />`
      }
      ${overview && html`<${Draft} key=${JSON.stringify(source)} overview=${overview} server=${server} />`}
    <//>
  </div>`;
}

/**
 * What a pipeline is, with its form; read again when another one is chosen.
 * @param {object | null} source
 * @returns {{overview: Overview | null, error: Error | null}}
 */
export function useOverview(source) {
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
