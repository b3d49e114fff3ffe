// What runs have in common and where they differ, from their records: parameters, metrics and steps.

import { direction } from "../ui/ui.js";

const MOST_STEPS = 500;

/** The parameters, each with its value in every run. @param {ComparedRun[]} runs */
export function parametersOf(runs) {
  const names = new Set(runs.flatMap(({ parameters }) => Object.keys(parameters ?? {})));
  return [...names].map((name) => {
    const values = runs.map(({ parameters }) => ({
      is_set: Object.hasOwn(parameters ?? {}, name),
      value: parameters?.[name],
    }));
    const differs = new Set(values.map(({ is_set, value }) => is_set && JSON.stringify(value))).size > 1;
    return { name, values, differs };
  });
}

/** The metrics, with their differences from one run. @param {ComparedRun[]} runs @param {number} [base] */
export function metricsOf(runs, base = 0) {
  const found = runs.map(
    ({ metrics }) => new Map(metrics.map((each) => [JSON.stringify([each.task, each.artifact, each.name]), each])),
  );
  const titles = new Map(runs.flatMap(({ tasks }) => tasks.map((each) => [each.path, each.title])));
  return [...new Set(found.flatMap((each) => [...each.keys()]))].map((key) => {
    const [task, , name] = JSON.parse(key);
    const values = found.map((each) => each.get(key)?.value ?? null);
    const numbers = values.map((value) => (typeof value === "number" ? value : null));
    const from = numbers[base];
    const differences = numbers.map((value, at) =>
      at !== base && value !== null && from !== null ? value - from : null,
    );
    return { task, name, title: titles.get(task) ?? task, values, differences, best: bestOf(name, numbers) };
  });
}

/** The places of the best values; none if all are the same. @param {string} name @param {(number | null)[]} numbers */
function bestOf(name, numbers) {
  const sign = direction(name);
  const known = new Set(numbers.filter((each) => each !== null).map((each) => each * sign));
  if (!sign || known.size < 2) return [];
  const best = Math.max(...known);
  return numbers.flatMap((each, at) => (each !== null && each * sign === best ? [at] : []));
}

/** The entry of each step in each run, the first ones by path. @param {ComparedRun[]} runs */
export function stepsOf(runs) {
  const entries = runs.map(
    ({ tasks }) => new Map(tasks.filter((each) => each.kind === "step").map((each) => [each.path, each])),
  );
  const paths = [...new Set(entries.flatMap((each) => [...each.keys()]))];
  const rows = paths.slice(0, MOST_STEPS).map((path) => {
    const cells = entries.map((each) => each.get(path) ?? null);
    return { path, title: cells.find((each) => each)?.title, cells };
  });
  return { rows, numMore: paths.length - rows.length };
}

/**
 * The curve of each custom job in each run; null where a run has none.
 * @param {Pick<ComparedRun, "jobs">[]} runs - Of each job what its route returns.
 */
export function curvesOf(runs) {
  const paths = new Set(runs.flatMap(({ jobs }) => [...jobs.keys()]));
  return [...paths].map((task) => ({ task, series: runs.map(({ jobs }) => longest(jobs.get(task)?.steps ?? [])) }));
}

/**
 * All workers of a job log the same loss; of replicas that train on their own the longest curve is shown.
 * @param {Curve[]} curves
 */
const longest = (curves) =>
  curves.reduce(
    (best, each) => (best && best.points.length >= each.points.length ? best : each),
    /** @type {Curve | null} */ (null),
  );
