// A log that follows its file: search, wrap, earlier lines; it stays where it is while the user has scrolled up.
import { beside, report } from "../server/report.js";
import { Check, html, replace, Select, useEffect, useRef, useState } from "../ui/ui.js";
import { Lines } from "./lines.js";
import { clickedLine, Place, useWindow } from "./place.js";
import { Search, useSearch } from "./search.js";
import { blockWith } from "./text.js";

/** Distance from the end in pixels within which the log follows. */
const NEAR = 32;

/** Return the place in a log that an address names. @param {URLSearchParams} query */
export const offsetIn = (query) => (/^\d{1,15}$/.test(query.get("at") ?? "") ? Number(query.get("at")) : null);

/** @param {LogProps} props */
export function Log({ path, task, log: end, setLog, at, addressOf, none = "No log yet." }) {
  const [isWrapped, setIsWrapped] = useState(true);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [keep, height] = useHeight(box);
  const shown = useWindow(path, task, end, setLog, at, keep);
  const { log } = shown;
  const [isFollowing, setIsFollowing, onScroll] = useFollowing(box, log, shown.isAtEnd, at);
  const reveal = usePlace(box, log, at);
  const show = (/** @type {{file?: string, at: string}} */ change) => replace(addressOf(change));
  const mark = (/** @type {number} */ offset) => {
    setIsFollowing(false);
    if (offset === at) reveal();
    else show({ at: String(offset) });
  };
  const found = useSearch(path, task, end, at, mark);
  const click = () => {
    const offset = clickedLine(/** @type {HTMLElement} */ (box.current), log);
    if (offset !== null) mark(offset);
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (!found.text || !["F3", "Escape"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Escape") found.input("");
    else found.move(event.shiftKey ? -1 : 1);
  };
  const follow = () => {
    shown.leave();
    setIsFollowing(true);
    if (at !== null) show({ at: "" });
  };
  useEffect(height, [log.blocks[0]?.offset]);
  const file = report ? beside(task, end.file) : `${path}/file?${new URLSearchParams({ task, file: end.file })}`;
  return html`<div class="log" onKeyDown=${keys}>
    <div class="toolbar">
      ${
        end.files.length > 1 &&
        html`<label>Log <${Select} value=${end.file} choices=${end.files}
          onText=${(file) => show({ file, at: "" })} /></label>`
      }
      ${!report && html`<${Search} found=${found} at=${at} />`}
      <${Check} title="Wrap" isOn=${isWrapped} onTurn=${setIsWrapped} />
      <span class="end"><${Place} log=${log} at=${at} addressOf=${addressOf} />
        ${end.isRead && html`<a href=${file} download=${!report}>${report ? "Open the file" : "Download"}</a>`}</span>
    </div>
    <div class="card lines ${isWrapped ? "wrapped" : ""}" ref=${box} onScroll=${onScroll} onClick=${click} tabindex="0"
      role="log" aria-label=${`Log of ${task}`} aria-live="off">
      ${report && log.blocks[0]?.offset > 0 && html`<p class="muted">These are the last lines; the file has all.</p>`}
      <${More} load=${report ? null : shown.earlier} text="Load earlier lines" shown=${shown} />
      ${log.blocks.map(
        (block) => html`<${Lines} key=${block.offset} block=${block} search=${found.text}
        at=${at !== null && blockWith(log, at) === block ? at : -1} />`,
      )}
      ${log.blocks.length === 0 && html`<p class="muted">${log.isRead ? "The log is empty." : none}</p>`}
      <${More} load=${shown.later} text="Load later lines" shown=${shown} />
    </div>
    ${!isFollowing && html`<button class="follow primary" onClick=${follow}>Jump to the end</button>`}
  </div>`;
}

/** A button that loads more lines. @param {{load: (() => void) | null, text: string, shown: any}} props */
function More({ load, text, shown: { isBusy, error } }) {
  if (!load) return null;
  return html`<p class="more"><button onClick=${load} disabled=${isBusy}>${text}</button>
    ${error && html`<span class="error">${error.message}</span>`}</p>`;
}

/**
 * Keep the end in view until the user scrolls up or goes to a place.
 * @param {Box} box @param {LogWindow} log @param {boolean} isAtEnd - Whether the window is the end of the log.
 * @param {number | null} at
 * @returns {[boolean, (isFollowing: boolean) => void, () => void]} Whether it follows, its setter, one for scrolling.
 */
function useFollowing(box, log, isAtEnd, at) {
  const [isFollowing, setIsFollowing] = useState(at === null);
  const last = useRef(0);
  useEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [log.blocks, isFollowing]);
  const onScroll = () => {
    const element = box.current;
    if (!element) return; // the event comes after the view is gone
    const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    if (isNear && isAtEnd && at === null) setIsFollowing(true);
    else if (element.scrollTop < last.current) setIsFollowing(false);
    last.current = element.scrollTop;
  };
  return [isFollowing, setIsFollowing, onScroll];
}

/**
 * Bring the place into view when it changes; lines that are loaded later do not move it.
 * @param {Box} box @param {LogWindow} log @param {number | null} at
 */
function usePlace(box, log, at) {
  const seen = useRef(/** @type {number | null} */ (null));
  const reveal = () => {
    const line = box.current?.querySelector(".line mark") ?? box.current?.querySelector(".line");
    if (!box.current || !line) return false;
    line.scrollIntoView({ block: "nearest" });
    const above = line.getBoundingClientRect().top - box.current.getBoundingClientRect().top;
    box.current.scrollTop += above - box.current.clientHeight / 2;
    return true;
  };
  useEffect(() => {
    if (at === seen.current) return;
    if (at === null || reveal()) seen.current = at;
  }, [at, log.blocks]);
  return reveal;
}

/**
 * Keep the lines where they are when earlier ones are added.
 * @param {Box} box
 * @returns {[() => void, () => void]} To call before and after the lines are drawn.
 */
function useHeight(box) {
  const height = useRef(0);
  const keep = () => {
    height.current = box.current?.scrollHeight ?? 0;
  };
  const restore = () => {
    if (height.current && box.current) box.current.scrollTop += box.current.scrollHeight - height.current;
    height.current = 0;
  };
  return [keep, restore];
}
