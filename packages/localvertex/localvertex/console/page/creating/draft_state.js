// What is written in the form, and the server's checks of it.
import { ApiError, post } from "../server/api.js";
import { usePost } from "../server/load.js";
import { useCallback, useMemo, useRef, useState } from "../ui/ui.js";

const DELAY_MS = 250;

/** The form as it begins. @param {Overview} overview @returns {DraftState} */
export function begin(overview) {
  const given = (/** @type {{name: string, value: string | null}[]} */ fields) =>
    new Map(fields.filter((each) => each.value !== null).map((each) => [each.name, String(each.value)]));
  const { labels, ...settings } = overview.settings;
  return {
    parameters: given(overview.parameters),
    artifacts: given(overview.artifacts),
    settings: {
      ...settings,
      labels: Object.entries(labels)
        .map(([name, value]) => `${name}=${value}`)
        .join("\n"),
    },
    region: overview.region,
  };
}

/**
 * The form after a change.
 * @param {DraftState} draft
 * @param {Change} change
 * @returns {DraftState}
 */
export function changed(draft, { part, name = "", text }) {
  if (part === "region") return { ...draft, region: text };
  if (part === "settings") return { ...draft, settings: { ...draft.settings, [name]: text } };
  if (!name) return { ...draft, [part]: new Map() };
  const values = new Map(draft[part]);
  if (text === null) values.delete(name);
  else values.set(name, text);
  return { ...draft, [part]: values };
}

/**
 * The form with the function that changes it.
 * @param {Overview} overview
 * @returns {[DraftState, (change: Change) => void]}
 */
export function useDraft(overview) {
  const [draft, setDraft] = useState(() => begin(overview));
  return [draft, useCallback((/** @type {Change} */ change) => setDraft((before) => changed(before, change)), [])];
}

/**
 * The body of a check; names are own fields, whatever they are.
 * @param {Overview} overview
 * @param {DraftState} draft
 */
export function body(overview, draft) {
  const labels = draft.settings.labels.split("\n").filter((line) => line.trim());
  const pairs = labels.map((line) => {
    const [name, ...rest] = line.split("=");
    return [name.trim(), rest.join("=").trim()];
  });
  return {
    content: overview.content,
    name: overview.path.split("/").pop(),
    path: overview.path,
    region: draft.region,
    parameters: Object.fromEntries(draft.parameters),
    artifacts: Object.fromEntries(draft.artifacts),
    ...draft.settings,
    labels: Object.fromEntries(pairs),
  };
}

/**
 * The server's answer about the present form, a moment after the last change.
 * @param {Overview} overview
 * @param {DraftState} draft
 * @returns {CheckState}
 */
export function useChecks(overview, draft) {
  const sent = useMemo(() => body(overview, draft), [overview, draft]);
  const { answer, error } = usePost("/local/check", sent, DELAY_MS);
  const errors = useMemo(() => errorsOf(answer), [answer]);
  // What was known of the last form without errors stays, except the command and the program.
  const known = useRef(/** @type {CheckAnswer} */ (overview));
  if (answer) known.current = { ...known.current, command: "", program: "", no_program: "", ...answer };
  return { answer: known.current, errors, error };
}

/** The messages by field. @param {CheckAnswer | null} answer */
const errorsOf = (answer) => new Map((answer?.errors ?? []).map((each) => [each.field, each.message]));

/**
 * Prepare the request of a run, with everything that it needs before; what is wrong is thrown, with its fields.
 * @param {Overview} overview
 * @param {DraftState} draft
 * @returns {Promise<{location: string, request: object}>}
 */
export async function prepared(overview, draft) {
  const answer = await post("/local/check", { ...body(overview, draft), is_start: true });
  if (answer.refusals.length) throw new ApiError(400, answer.refusals.join("\n"));
  for (const each of answer.before) await post(`/v1/${answer.location}/${each.path}`, each.body);
  return answer;
}

/** Start the run and return its id. @param {Overview} overview @param {DraftState} draft */
export async function start(overview, draft) {
  const { location, request } = await prepared(overview, draft);
  const job = await post(`/v1/${location}/pipelineJobs`, request);
  return job.name.split("/").pop();
}
