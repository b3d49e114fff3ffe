// Try a model: with an image that is dropped or chosen, or with instances as JSON.
import { get, post } from "../server/server.js";
import { count, DropZone, html, Notice, Problem, TextArea, useEffect, useRef, useState } from "../ui/ui.js";
import { Predictions } from "./predictions.js";

/** Vertex AI accepts requests of 1.5 MiB; base64 makes an image larger by a third. */
const MAX_IMAGE_BYTES = 1_179_000;

const POLL_MILLISECONDS = 1000;

const CONFLICT = 409;

/** @param {{model: any}} props */
export function TryModel({ model }) {
  const [mode, setMode] = useState("image");
  const path = `/local/models/${encodeURIComponent(model.id)}/${encodeURIComponent(model.version)}`;
  const [send, cancel, { pending, answer, error }] = usePrediction(path);
  if (model.cannot_run && !model.endpoints.length) {
    return html`<${Notice} kind="warn" title="This version cannot be tried here">${model.cannot_run}<//>`;
  }
  const choice = (/** @type {string} */ id, /** @type {string} */ title) => html`<label>
    <input type="radio" name="mode" checked=${mode === id} onChange=${() => setMode(id)} />${title}</label>`;
  return html`
    <fieldset class="try-mode"><legend class="hidden">Request</legend>
      ${choice("image", "An image")} ${choice("json", "JSON, for models with other instances")}</fieldset>
    <p class="muted">${
      model.endpoints.length
        ? `The endpoint ${model.endpoints[0].display_name}, where this version is deployed, answers.`
        : "The serving container of this version answers. It starts here, and ends after 5 minutes without a request."
    }</p>
    ${
      mode === "image"
        ? html`<${Image} onSend=${send} isBusy=${Boolean(pending)} />`
        : html`<${Json} onSend=${send} isBusy=${Boolean(pending)} />`
    }
    <div aria-live="polite">${pending && html`<${Progress} pending=${pending} onCancel=${cancel} />`}</div>
    ${error && html`<${Problem} title="No prediction" error=${error} />`}
    ${answer && html`<${Predictions} answer=${answer} />`}`;
}

/**
 * Send requests to a version; the newest one counts.
 * @param {string} path
 * @returns {[(body: object) => void, () => void, {pending: any, answer: any, error: any}]}
 */
function usePrediction(path) {
  const [shown, setShown] = useState(/** @type {any} */ ({}));
  const number = useRef(0);
  const isPending = Boolean(shown.pending);
  useEffect(() => {
    if (!isPending) return;
    const timer = setInterval(async () => {
      const { state, line } = await get(`${path}:trial`).catch(() => ({ state: "", line: "" }));
      setShown((/** @type {any} */ now) => (now.pending ? { ...now, pending: { ...now.pending, state, line } } : now));
    }, POLL_MILLISECONDS);
    return () => clearInterval(timer);
  }, [isPending]);
  const send = async (/** @type {object} */ body) => {
    const own = ++number.current;
    const set = (/** @type {any} */ change) => own === number.current && setShown(change);
    set({ pending: { since: Date.now(), state: "", line: "" } });
    try {
      set({ answer: await post(`${path}:predict`, body) });
    } catch (error) {
      set({ error });
    }
  };
  const cancel = () => {
    number.current += 1;
    setShown({});
    post(`${path}:cancel`).catch((error) => error.status !== CONFLICT && setShown({ error }));
  };
  return [send, cancel, shown];
}

/** @param {{pending: any, onCancel: () => void}} props */
function Progress({ pending, onCancel }) {
  const seconds = Math.round((Date.now() - pending.since) / 1000);
  const text = pending.state === "starting" ? "Starting the serving container" : "Waiting for the prediction";
  return html`<div class="trial">
    <span class="spinner" aria-hidden="true"></span>
    <div><div>${text}… ${seconds > 0 && html`<span class="muted" aria-hidden="true">${seconds} s</span>`}</div>
      ${
        pending.state === "starting" &&
        pending.line &&
        html`<div class="small muted"><code>${pending.line}</code></div>`
      }</div>
    <button onClick=${onCancel}>Cancel</button>
  </div>`;
}

/** @param {{onSend: (body: object) => void, isBusy: boolean}} props */
function Image({ onSend, isBusy }) {
  const [chosen, setChosen] = useState(/** @type {{url: string, name: string} | null} */ (null));
  const [refused, setRefused] = useState("");
  useEffect(() => () => chosen && URL.revokeObjectURL(chosen.url), [chosen]);
  const take = async (/** @type {FileList} */ [file]) => {
    if (!file) return;
    setRefused("");
    setChosen({ url: URL.createObjectURL(file), name: file.name });
    if (file.size > MAX_IMAGE_BYTES) {
      return setRefused(
        `${file.name} has ${count(file.size)} bytes. As on Vertex AI, a request has at most ` +
          `1.5 MiB: an image of up to ${count(MAX_IMAGE_BYTES)} bytes. Make it smaller.`,
      );
    }
    onSend({ image: await base64(file) });
  };
  return html`<${DropZone} action="Choose an image" aria-label="Choose an image" accept="image/*" disabled=${isBusy}
        onFiles=${take}>
      ${chosen && html`<img src=${chosen.url} alt=${`The image ${chosen.name}`} />`}
      <p class="muted">Drop an image here. It is sent as <code>${'{"instances": [{"b64": "…"}]}'}</code>.</p>
    <//>
    ${refused && html`<${Problem} title="The image is too large" error=${refused} />`}`;
}

/** @param {{onSend: (body: object) => void, isBusy: boolean}} props */
function Json({ onSend, isBusy }) {
  const [text, setText] = useState('{"instances": []}');
  const [wrong, setWrong] = useState("");
  const send = () => {
    try {
      setWrong("");
      onSend(JSON.parse(text));
    } catch (error) {
      setWrong(/** @type {Error} */ (error).message);
    }
  };
  return html`<div class="request"><label for="request">Request, as for Vertex AI's predict</label>
    <${TextArea} id="request" rows="8" spellcheck=${false} value=${text} aria-invalid=${Boolean(wrong)}
      onText=${setText} />
    ${wrong && html`<p class="error" role="alert">Not JSON: ${wrong}</p>`}
    <p><button class="primary" disabled=${isBusy} onClick=${send}>Predict</button></p></div>`;
}

/** @param {File} file */
const base64 = async (file) =>
  btoa(Array.from(new Uint8Array(await file.arrayBuffer()), (byte) => String.fromCharCode(byte)).join(""));
