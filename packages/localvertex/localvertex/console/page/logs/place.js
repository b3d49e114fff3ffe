// A place in a log: a line that the address names. Far from the end, the lines around it are a window of their own.
import { get, useAction } from "../server/server.js";
import { Copy, html, useEffect, useRef, useState } from "../ui/ui.js";
import { lineAt } from "./lines.js";
import { added, blockWith, elsewhere, indexOf, offsetOf, preceded, shown } from "./text.js";

/**
 * Return the window to show: the end of the log, or the lines around a place that is not in it.
 * @param {string} path @param {string} task @param {LogWindow} log
 * @param {SetLog} setLog
 * @param {number | null} at - The place.
 * @param {() => void} onEarlier - Called before earlier lines are drawn.
 */
export function useWindow(path, task, log, setLog, at, onEarlier) {
  const [near, setNear] = useState(/** @type {LogWindow | null} */ (null));
  const tried = useRef(/** @type {number | null} */ (null));
  const read = (/** @type {string} */ name, /** @type {number} */ offset) =>
    get(`${path}?${new URLSearchParams({ task, file: log.file, [name]: String(offset) })}`);
  const [load, { isBusy, error }] = useAction(async (offset) => setNear(elsewhere(log, await read("around", offset))));
  useEffect(() => setNear(null), [log.round]);
  useEffect(() => {
    if (at === null || !log.isRead || isBusy) return;
    const isShown = blockWith(near ?? log, at);
    if (!isShown && blockWith(log, at)) setNear(null);
    else if (!isShown && tried.current !== at) load(at);
    // A place beyond the end of the log is requested only once.
    tried.current = isShown ? null : at;
  }, [at, log.isRead, log.blocks[0]?.offset, near, isBusy]);
  const set = near
    ? (/** @type {(log: LogWindow) => LogWindow} */ change) => setNear((present) => present && change(present))
    : setLog;
  const [earlier, before] = useAction(async () => {
    const { offset } = (near ?? log).blocks[0];
    const piece = await read("before", offset);
    onEarlier();
    set((/** @type {LogWindow} */ present) =>
      present.blocks[0]?.offset === offset ? preceded(present, piece) : present,
    );
  });
  const [later, after] = useAction(async () => {
    const piece = await read("offset", /** @type {LogWindow} */ (near).end);
    set((/** @type {LogWindow} */ present) => added(present, piece));
  });
  return {
    log: near ?? log,
    isAtEnd: !near,
    leave: () => {
      tried.current = at; // the address has it until the next drawing
      setNear(null);
    },
    earlier: (near ?? log).blocks[0]?.offset > 0 ? earlier : null,
    later: near && near.end < log.end ? later : null,
    isBusy: isBusy || before.isBusy || after.isBusy,
    error: error ?? before.error ?? after.error,
  };
}

/** The line of the place, to copy. @param {PlaceProps} props */
export function Place({ log, at, addressOf }) {
  const block = at === null ? undefined : blockWith(log, at);
  if (!block) return null;
  const line = block.text.slice(...lineAt(block.text, indexOf(block, Number(at))));
  const address = new URL(addressOf({ file: log.file, at: String(at) }), location.href);
  return html`<span class="place" role="group" aria-label="Marked line">
    <${Copy} title="Copy line" text=${shown(line, true)} /><${Copy} title="Copy link" text=${address.href} />
  </span>`;
}

/**
 * Return the offset of the line that was clicked; null if text was selected, or no line was clicked.
 * @param {HTMLElement} box @param {LogWindow} log
 */
export function clickedLine(box, log) {
  const { isCollapsed, anchorNode, anchorOffset } = /** @type {Selection} */ (getSelection());
  const drawn = isCollapsed && anchorNode?.parentElement?.closest("pre");
  const block = drawn && log.blocks[[...box.querySelectorAll("pre")].indexOf(drawn)];
  if (!block) return null;
  const range = document.createRange();
  range.setStart(drawn, 0);
  range.setEnd(/** @type {Node} */ (anchorNode), anchorOffset);
  const above = range.toString().split("\n").length - 1;
  const index = block.text.split("\n").slice(0, above).join("\n").length + Math.min(above, 1);
  return offsetOf(block, index);
}
