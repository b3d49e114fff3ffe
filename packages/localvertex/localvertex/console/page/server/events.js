// The event stream of this tab: one connection, closed while the tab is hidden, opened again when it is lost.

/** @typedef {Record<string, (data: any) => void>} Handlers */

const RETRY_MS = 2000;

/** After this time without a heartbeat, which comes every 15 s, the connection or the server hangs. */
const SILENT_MS = 40000;

/** Between two attempts when the server has too many streams. */
const BUSY_RETRY_MS = 10000;

const LOST = "Connection lost: this page shows old data. Trying to reconnect.";

const BUSY = "Too many tabs of the console are open: this page shows old data. Close some tabs.";

/** @type {(() => void) | null} */
let closeCurrent = null;

/** @type {Set<(problem: string) => void>} */
const listeners = new Set();

/**
 * Call a listener with a text when the stream is lost, and with an empty one when it is back. In between, what is shown
 * may be out of date.
 * @param {(problem: string) => void} listener
 * @returns {() => void} Ends this.
 */
export function onConnection(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** @param {string} problem */
function report(problem) {
  for (const each of listeners) each(problem);
}

/**
 * Follow `GET /local/events`; an earlier stream of this tab is closed. Each connection begins with a fresh first event.
 * @param {Record<string, string>} query - `run`, `log`, `file` and `job`; empty for the list of runs.
 * @param {Handlers} handlers - By the name of the event. `end`: nothing more will come.
 * @returns {() => void} Closes the stream.
 */
export function follow(query, handlers) {
  closeCurrent?.();
  /** @type {EventSource | null} */
  let source = null;
  let timer = 0;
  const later = (/** @type {() => void} */ call, /** @type {number} */ ms) => {
    clearTimeout(timer);
    timer = setTimeout(call, ms);
  };
  const shut = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const open = () => {
    shut();
    if (document.hidden) return;
    source = listen(query, handlers, close);
    source.onerror = lost;
    source.addEventListener("alive", () => later(lost, SILENT_MS));
    later(lost, SILENT_MS);
  };
  async function lost() {
    shut();
    later(open, RETRY_MS);
    report(LOST);
    if (!(await hasTooMany(query)) || source || closeCurrent !== close) return;
    report(BUSY);
    later(open, BUSY_RETRY_MS);
  }
  function close() {
    shut();
    document.removeEventListener("visibilitychange", open);
    if (closeCurrent === close) {
      closeCurrent = null;
      report("");
    }
  }
  closeCurrent = close;
  document.addEventListener("visibilitychange", open);
  open();
  return close;
}

/**
 * Whether the server has too many streams; an `EventSource` does not see why it was refused.
 * @param {Record<string, string>} query
 */
const hasTooMany = (query) =>
  fetch(address(query), { method: "HEAD" }).then(
    (answer) => answer.status === 503,
    () => false,
  );

/** @param {Record<string, string>} query */
const address = (query) => `/local/events?${new URLSearchParams(query)}`;

/**
 * Open one connection.
 * @param {Record<string, string>} query
 * @param {Handlers} handlers
 * @param {() => void} end
 */
function listen(query, handlers, end) {
  const source = new EventSource(address(query));
  source.onopen = () => report("");
  for (const name of new Set([...Object.keys(handlers), "end"])) {
    source.addEventListener(name, (event) => {
      if (name === "end") end();
      handlers[name]?.(JSON.parse(event.data || "{}"));
    });
  }
  return source;
}
