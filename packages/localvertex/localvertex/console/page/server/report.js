// The data of a report in place of a server, as the routes and the events of its run would return it.

const element = document.getElementById("report");

/** Null in the console. @type {ReportData | null} */
export const report = element && JSON.parse(element.textContent ?? "");

/** Return what a route of the run would answer; undefined for all others. @param {string} path */
export function answer(path) {
  const [, task] = path.split("/mistakes?task=");
  if (task) return { mistakes: report?.mistakes[decodeURIComponent(task)] ?? [] };
  if (path.includes("/graph?")) return report?.graph ?? undefined;
  return path === `/local/runs/${encodeURIComponent(report?.run.id)}` ? report?.run : undefined;
}

/**
 * Return the events of a stream: of the run, of one log, and of one custom job.
 * @param {Record<string, string>} query
 */
export function eventsOf({ log, file, job }) {
  const logs = report?.events.filter(([name, event]) => name === "log" && event.task === log) ?? [];
  const shown = logs.find(([, event]) => !file || event.file === file);
  return (
    report?.events.filter(
      (each) => each === shown || each[0] === "run" || (each[0] !== "log" && job && each[1].task === job),
    ) ?? []
  );
}

/** The address of a file beside the report. @param {string[]} parts */
export const beside = (...parts) =>
  ["."]
    .concat(
      parts
        .join("/")
        .split("/")
        .map((part) => encodeURIComponent(part.toWellFormed())),
    )
    .join("/");
