// The events of one run, merged: the run, its tasks, its problem, and one log.

import { withPoints } from "../jobs/curves.js";
import { added, EMPTY } from "../logs/window.js";
import { useEvents } from "../server/load.js";
import { useState } from "../ui/ui.js";

/**
 * @typedef {object} Live
 * @property {any} run - The fields of the run; null until the first event.
 * @property {Map<string, any>} tasks - The entries by their paths.
 * @property {string} problem - Why the record cannot be read; empty if it can.
 * @property {boolean} isDeleted
 * @property {any} job - The newest `job` event of the chosen step.
 * @property {Map<string, any>} steps - The points of its replicas' curves.
 * @property {import("../logs/window.js").LogWindow} log
 * @property {import("../logs/window.js").SetLog} setLog
 */

/**
 * Follow a run, and the log and the custom job of one of its steps.
 * @param {string | null} run - Null: it is not known yet whether it exists.
 * @param {string} task - Path of the chosen step; empty for none.
 * @param {string} file - Name of the log; empty for the first.
 * @returns {Live}
 */
export function useRun(run, task, file) {
  const [record, setRecord] = useState(() => ({ run: null, tasks: new Map(), problem: "", isDeleted: false }));
  const [log, setLog] = useOf(`${task} ${file}`, EMPTY);
  const [job, setJob] = useOf(task, NO_JOB);
  const hasJob = Boolean(task && record.tasks.get(task)?.custom_job);
  const query = run && { run, ...(task && { log: task }), ...(file && { file }), ...(hasJob && { job: task }) };
  useEvents(query || null, {
    run: (event) => setRecord((previous) => merged(previous, event)),
    problem: ({ text }) => setRecord((previous) => ({ ...previous, problem: text })),
    end: () => setRecord((previous) => ({ ...previous, isDeleted: true })),
    log: (event) => event.task === task && setLog((previous) => added(previous, event)),
    job: (event) => event.task === task && setJob((previous) => ({ ...previous, job: event })),
    steps: (event) => event.task === task && setJob((previous) => withPoints(previous, event)),
  });
  return { ...record, log, setLog, job: job.job, steps: job.steps };
}

/** @type {{job: any, steps: Map<string, any>}} */
const NO_JOB = { job: null, steps: new Map() };

/**
 * A state that belongs to a step or a log: of another one, it begins anew.
 * @template T
 * @param {string} key
 * @param {T} empty
 * @returns {[T, (change: (state: T) => T) => void]}
 */
function useOf(key, empty) {
  const [state, setState] = useState({ key, value: empty });
  const of = (/** @type {{key: string, value: T}} */ each) => (each.key === key ? each.value : empty);
  return [of(state), (change) => setState((previous) => ({ key, value: change(of(previous)) }))];
}

/** @param {any} previous @param {{run: any, tasks: any[], is_first: boolean}} event */
function merged(previous, { run, tasks, is_first }) {
  const known = new Map(is_first ? [] : previous.tasks);
  for (const each of tasks) known.set(each.path, each);
  return { run, tasks: known, problem: "", isDeleted: false };
}
