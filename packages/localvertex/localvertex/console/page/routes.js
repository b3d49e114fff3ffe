// The views by the fragment of the address.

/** @type {Array<[string, string, () => Promise<any>]>} */
const VIEWS = [
  ["runs", "/runs", () => import("./runs/runs.js")],
  ["create", "/create", () => import("./creating/create.js")],
  ["run", "/runs/:id", () => import("./runs/run.js")],
  ["run", "/runs/:id/:task", () => import("./runs/run.js")],
  ["job", "/jobs/:id", () => import("./jobs/custom_job.js")],
  ["compare", "/compare", () => import("./comparing/compare.js")],
  ["schedules", "/schedules", () => import("./schedules/schedules.js")],
  ["new schedule", "/schedules/new", () => import("./schedules/new_schedule.js")],
  ["schedule", "/schedules/:id", () => import("./schedules/schedule.js")],
  ["models", "/models", () => import("./models/models.js")],
  ["model", "/models/:id/:version", () => import("./models/model.js")],
];

const NOT_FOUND = () => import("./ui/not_found.js");

/**
 * Return the view of a fragment, such as `#/runs/ID?closed=a`; parts of its path are URL-encoded.
 * @param {string} fragment
 * @returns {Route}
 */
export function route(fragment) {
  const [path, search = ""] = fragment
    .replace(/^#?\/?$/, "#/runs")
    .slice(1)
    .split("?", 2);
  const query = new URLSearchParams(search);
  const parts = path.split("/");
  for (const [name, pattern, load] of VIEWS) {
    const params = match(pattern.split("/"), parts);
    // Names become parts of the server's addresses, and none leads out of its folder.
    const isSafe = [params?.id, params?.version].every((each = "a") => /^[\w-]+$/.test(each));
    if (params && isSafe && !/(^|\/)\.\.(\/|$)/.test(query.get("file") ?? "")) return { name, params, query, load };
  }
  return { name: "not found", params: { path }, query, load: NOT_FOUND };
}

/**
 * Return the values of the names in a pattern, null when the path is another one.
 * @param {string[]} pattern
 * @param {string[]} parts
 * @returns {Record<string, string> | null}
 */
function match(pattern, parts) {
  if (pattern.length !== parts.length) return null;
  /** @type {Record<string, string>} */
  const params = {};
  for (const [index, name] of pattern.entries()) {
    if (name.startsWith(":")) {
      try {
        params[name.slice(1)] = decodeURIComponent(parts[index]);
      } catch {
        return null;
      }
    } else if (name !== parts[index]) return null;
  }
  return params;
}
