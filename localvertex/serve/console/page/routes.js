// The views by the fragment of the address.

/** @type {Array<[string, string, () => Promise<any>]>} */
const VIEWS = [
  ["runs", "/runs", () => import("./views/runs.js")],
  ["create", "/create", () => import("./views/create.js")],
  ["run", "/runs/:id", () => import("./views/run.js")],
  ["run", "/runs/:id/:task", () => import("./views/run.js")],
  ["job", "/jobs/:id", () => import("./views/job.js")],
  ["compare", "/compare", () => import("./views/compare.js")],
  ["schedules", "/schedules", () => import("./views/schedules.js")],
  ["models", "/models", () => import("./views/models.js")],
  ["model", "/models/:id/:version", () => import("./views/model.js")],
  ["datasets", "/datasets", () => import("./views/datasets.js")],
];

/**
 * Return the view of a fragment, such as `#/runs/ID?closed=a`; parts of its path are URL-encoded.
 * @param {string} fragment
 */
export function route(fragment) {
  const [path, query = ""] = (fragment.replace(/^#/, "") || "/runs").split("?", 2);
  const parts = path.split("/");
  for (const [name, pattern, load] of VIEWS) {
    const names = pattern.split("/");
    if (names.length !== parts.length) continue;
    if (names.every((each, index) => each.startsWith(":") || each === parts[index])) {
      const pairs = names.map((each, index) => [each.slice(1), decodeURIComponent(parts[index])]);
      const params = Object.fromEntries(pairs.filter((_, index) => names[index].startsWith(":")));
      return { name, params, query: new URLSearchParams(query), load };
    }
  }
  return { name: "runs", params: {}, query: new URLSearchParams(), load: VIEWS[0][2] };
}
