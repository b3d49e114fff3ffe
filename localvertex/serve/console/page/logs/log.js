// A log that follows its file: search, wrap, earlier lines; it stays where it is while the user has scrolled up.
import { get } from "../server/api.js";
import { useAction } from "../server/load.js";
import { html, useEffect, useMemo, useRef, useState } from "../ui/html.js";
import { marked } from "./text.js";
import { preceded } from "./window.js";

/** Distance from the end in pixels within which the log follows. */
const NEAR = 32;

/**
 * @param {object} props
 * @param {string} props.run
 * @param {string} props.task
 * @param {import("./window.js").LogWindow} props.log
 * @param {(change: (log: any) => any) => void} props.setLog
 * @param {(file: string) => void} props.onFile - Shows another log of the step.
 * @param {string} [props.path] - Where its pieces are; those of a job of the API are elsewhere.
 * @param {string} [props.none] - Shown if there is no log.
 */
export function Log({ run, task, log, setLog, onFile, path = `/local/runs/${run}/log`, none = "No log yet." }) {
  const [search, setSearch] = useState("");
  const [isWrapped, setIsWrapped] = useState(true);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [isFollowing, follow, onScroll] = useFollowing(box, log);
  const [loadEarlier, { isBusy, error }] = useEarlier(path, task, log, setLog, box);
  const found = useSearch(box, search, log);
  const isCut = (log.blocks[0]?.offset ?? 0) > 0;
  return html`<div class="log">
    <div class="toolbar">
      <${Files} log=${log} onFile=${onFile} />
      <${Search} search=${search} onInput=${setSearch} found=${found} isCut=${isCut} />
      <label class="check"><input type="checkbox" checked=${isWrapped}
        onChange=${() => setIsWrapped(!isWrapped)} />Wrap</label>
      ${run && log.isRead && html`<span class="end"><a href=${href(run, task, log.file)}>Download</a></span>`}
    </div>
    <div class="lines ${isWrapped ? "wrapped" : ""}" ref=${box} onScroll=${onScroll} tabindex="0" role="log"
      aria-label=${`Log of ${task}`} aria-live="off">
      ${
        isCut &&
        html`<p class="earlier"><button onClick=${loadEarlier} disabled=${isBusy}>Load earlier lines</button>
        ${error && html`<span class="error">${error.message}</span>`}</p>`
      }
      ${log.blocks.map((block) => html`<${Lines} key=${block.offset} block=${block} search=${search} />`)}
      ${log.blocks.length === 0 && html`<p class="muted">${log.isRead ? "The log is empty." : none}</p>`}
    </div>
    ${!isFollowing && html`<button class="follow primary" onClick=${follow}>Jump to the end</button>`}
  </div>`;
}

/** @param {string} run @param {string} task @param {string} file */
const href = (run, task, file) =>
  `/runs/${[run, ...task.split("/"), ...file.split("/")].map(encodeURIComponent).join("/")}?download`;

/** The choice of the log, where a step has several. @param {{log: any, onFile: (file: string) => void}} props */
function Files({ log, onFile }) {
  if (log.files.length < 2) return null;
  return html`<label>Log <select value=${log.file} onChange=${(/** @type {any} */ event) => onFile(event.target.value)}>
    ${log.files.map((/** @type {string} */ name) => html`<option key=${name} value=${name}>${name}</option>`)}
  </select></label>`;
}

/** @param {{search: string, onInput: (text: string) => void, found: any, isCut: boolean}} props */
function Search({ search, onInput, found, isCut }) {
  const { count, index, move } = found;
  const go = (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && move(event.shiftKey ? -1 : 1);
  const where = isCut ? " in the lines shown" : "";
  const number = index < 0 ? "" : `${index + 1} of `;
  return html`<span class="search" role="search">
    <input type="search" placeholder="Search the log" aria-label="Search the log" value=${search} onKeyDown=${go}
      onInput=${(/** @type {any} */ event) => onInput(event.target.value)} />
    ${
      search &&
      html`<span class="muted" role="status">${count ? `${number}${count}${where}` : `None${where}`}</span>
      <button class="icon" aria-label="Previous match" disabled=${!count} onClick=${() => move(-1)}>↑</button>
      <button class="icon" aria-label="Next match" disabled=${!count} onClick=${() => move(1)}>↓</button>`
    }
  </span>`;
}

/**
 * One block; it is drawn again only when its text or the search changes.
 * @param {{block: any, search: string}} props
 */
function Lines({ block, search }) {
  return useMemo(() => html`<pre>${marked(block.text, search)}</pre>`, [block.text, search]);
}

/**
 * Keep the end in view until the user scrolls up.
 * @param {{current: HTMLElement | null}} box
 * @param {any} log
 * @returns {[boolean, () => void, () => void]} Whether it follows, a function that makes it, and one for scrolling.
 */
function useFollowing(box, log) {
  const [isFollowing, setIsFollowing] = useState(true);
  const last = useRef(0);
  useEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [log.blocks, isFollowing]);
  const onScroll = () => {
    const element = box.current;
    if (!element) return; // the event comes after the view is gone
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    if (isAtEnd) setIsFollowing(true);
    else if (element.scrollTop < last.current) setIsFollowing(false);
    last.current = element.scrollTop;
  };
  return [isFollowing, () => setIsFollowing(true), onScroll];
}

/**
 * Load the piece before the window, and keep the lines where they are.
 * @param {string} path @param {string} task @param {any} log @param {(change: (log: any) => any) => void} setLog
 * @param {{current: HTMLElement | null}} box
 */
function useEarlier(path, task, log, setLog, box) {
  const height = useRef(0);
  useEffect(() => {
    if (!height.current || !box.current) return;
    box.current.scrollTop += box.current.scrollHeight - height.current;
    height.current = 0;
  }, [log.blocks[0]?.offset]);
  return useAction(async () => {
    const before = String(log.blocks[0].offset);
    const query = new URLSearchParams({ task, file: log.file, before });
    const piece = await get(`${path}?${query}`);
    height.current = box.current?.scrollHeight ?? 0;
    setLog((present) => (String(present.blocks[0]?.offset) === before ? preceded(present, piece) : present));
  });
}

/** Move between the matches. @param {{current: HTMLElement | null}} box @param {string} search @param {any} log */
function useSearch(box, search, log) {
  const [count, setCount] = useState(0);
  const [index, setIndex] = useState(-1);
  const matches = () => [...(box.current?.querySelectorAll("mark") ?? [])];
  useEffect(() => setIndex(-1), [search]);
  useEffect(() => setCount(search ? matches().length : 0), [search, log.blocks]);
  const move = (/** @type {number} */ by) => {
    const every = matches();
    if (!every.length) return;
    const next = index < 0 && by < 0 ? every.length - 1 : (index + by + every.length) % every.length;
    for (const each of every) each.classList.toggle("current", each === every[next]);
    every[next].scrollIntoView({ block: "center" });
    setIndex(next);
  };
  return { count, index, move };
}
