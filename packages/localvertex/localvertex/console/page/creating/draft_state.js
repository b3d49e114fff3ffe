// What is written in the form, and the server's checks of it.
import { ApiError, post, usePost } from "../server/server.js";
import { useCallback, useMemo, useRef, useState } from "../ui/ui.js";

const DELAY_MS = 250;

/** The newest form, with which the same pipeline begins again when its view was left. */
const left = { key: "", draft: /** @type {DraftState | null} */ (null) };

/**
 * The form, which begins with the values of an earlier run, and the function that changes it.
 * @param {Overview} overview
 * @returns {[DraftState, (change: Change) => void]}
 */
export function useDraft(overview) {
  const [draft, setDraft] = useState(() => {
    const { parameters, settings, region, content } = overview;
    const labels = Object.entries(settings.labels).map(([name, value]) => `${name}=${value}`);
    const values = parameters.filter((each) => each.value !== null).map((each) => [each.name, String(each.value)]);
    const key = JSON.stringify([content, values]);
    if (left.key === key && left.draft) return left.draft;
    left.key = key;
    return {
      parameters: new Map(/** @type {[string, string][]} */ (values)),
      settings: { ...settings, labels: labels.join("\n"), region },
    };
  });
  left.draft = draft;
  return [draft, useCallback((/** @type {Change} */ change) => setDraft((before) => changed(before, change)), [])];
}

/** @param {DraftState} draft @param {Change} change @returns {DraftState} */
function changed(draft, { part, name = "", text }) {
  if (part === "settings") return { ...draft, settings: { ...draft.settings, [name]: text } };
  const values = new Map(name ? draft[part] : []);
  if (text === null) values.delete(name);
  else values.set(name, text);
  return { ...draft, [part]: values };
}

/**
 * The body of a check; names are own fields, whatever they are.
 * @param {Overview} overview
 * @param {DraftState} draft
 */
function body(overview, draft) {
  const lines = draft.settings.labels.split("\n").filter((line) => line.trim());
  const labels = lines.map((line) => {
    const [name, ...rest] = line.split("=");
    return [name.trim(), rest.join("=").trim()];
  });
  return {
    content: overview.content,
    name: overview.path.split("/").pop(),
    path: overview.path,
    parameters: Object.fromEntries(draft.parameters),
    ...draft.settings,
    labels: Object.fromEntries(labels),
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
  const errors = useMemo(
    () => new Map(/** @type {CheckAnswer} */ (answer)?.errors?.map(({ field, message }) => [field, message])),
    [answer],
  );
  // What was known of the last form without errors stays.
  const known = useRef(/** @type {CheckAnswer} */ (overview));
  if (answer) known.current = { ...known.current, ...answer };
  return { answer: known.current, errors, error };
}

/**
 * Prepare the request of a run; what is wrong is thrown, with its fields.
 * @param {Overview} overview
 * @param {DraftState} draft
 * @returns {Promise<{location: string, request: object}>}
 */
export async function prepared(overview, draft) {
  const answer = await post("/local/check", { ...body(overview, draft), is_start: true });
  if (answer.refusals.length) throw new ApiError(400, answer.refusals.join("\n"));
  return answer;
}
