// The events of a custom job and of one log, merged.

import { added, EMPTY } from "../logs/text.js";
import { useState } from "../ui/ui.js";

/** @type {{job: any, steps: Map<string, any>}} */
const NO_JOB = { job: null, steps: new Map() };

/**
 * The custom job of a step, or one of the API, and one of its logs.
 * @param {string} task @param {string} file
 * @returns {[Live, Handlers]} With the handlers of the events.
 */
export function useJob(task, file) {
  const [log, setLog] = useOf(`${task} ${file}`, EMPTY);
  const [job, setJob] = useOf(task, NO_JOB);
  // The stream of another step may end with an event.
  const isOf = (/** @type {{task?: string}} */ event) => !event.task || event.task === task;
  return [
    { ...job, log, setLog },
    {
      log: (event) => isOf(event) && setLog((previous) => added(previous, event)),
      job: (event) => isOf(event) && setJob((previous) => ({ ...previous, job: event })),
      steps: (event) => isOf(event) && setJob((previous) => withPoints(previous, event)),
    },
  ];
}

/**
 * A state that belongs to a step or a log, and is reset for another one.
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

/** @template {{steps: Map<string, Curve>}} T @param {T} previous @param {NewPoints} event @returns {T} */
function withPoints(previous, event) {
  const steps = new Map(previous.steps);
  const { points = [], evaluated = [] } = event.is_first ? {} : (steps.get(event.replica) ?? {});
  const all = { points: [...points, ...event.points], evaluated: [...evaluated, ...event.evaluated] };
  steps.set(event.replica, { ...event, ...all });
  return { ...previous, steps };
}
