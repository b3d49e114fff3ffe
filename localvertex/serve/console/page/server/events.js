// The event stream of this tab: one connection, closed while the tab is hidden, opened again when it is lost.

/** @typedef {Record<string, (data: any) => void>} Handlers */

const RETRY_MS = 2000;

/** @type {(() => void) | null} */
let closeCurrent = null;

/** @type {Set<(isConnected: boolean) => void>} */
const listeners = new Set();

/**
 * Call a listener when the stream is lost or there again. What is shown may be out of date in between.
 * @param {(isConnected: boolean) => void} listener
 * @returns {() => void} Ends this.
 */
export function onConnection(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** @param {boolean} isConnected */
function report(isConnected) {
  for (const each of listeners) each(isConnected);
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
  const shut = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const open = () => {
    shut();
    if (document.hidden) return;
    source = listen(query, handlers, close);
    source.onerror = () => {
      shut();
      report(false);
      timer = setTimeout(open, RETRY_MS);
    };
  };
  function close() {
    shut();
    document.removeEventListener("visibilitychange", open);
    if (closeCurrent === close) {
      closeCurrent = null;
      report(true);
    }
  }
  closeCurrent = close;
  document.addEventListener("visibilitychange", open);
  open();
  return close;
}

/**
 * Open one connection.
 * @param {Record<string, string>} query
 * @param {Handlers} handlers
 * @param {() => void} end
 */
function listen(query, handlers, end) {
  const source = new EventSource(`/local/events?${new URLSearchParams(query)}`);
  source.onopen = () => report(true);
  for (const name of new Set([...Object.keys(handlers), "end"])) {
    source.addEventListener(name, (event) => {
      if (name === "end") end();
      handlers[name]?.(JSON.parse(event.data || "{}"));
    });
  }
  return source;
}
