// The start of the page: the session, then the view of the address.

import { App } from "./app.js";
import { get, openSession } from "./server/api.js";
import { html, render } from "./ui/html.js";
import { Problem } from "./ui/problem.js";

const START = "#token=";

const REFUSED =
  "This browser may not use the server yet. Open the address that the server printed, which ends in #token=..., " +
  "or run: python -m localvertex console";

/** Exchange the token of the address for a cookie, or check that there is one. */
async function beginSession() {
  if (!location.hash.startsWith(START)) return get("/local/server");
  const token = location.hash.slice(START.length);
  history.replaceState(null, "", location.pathname);
  return openSession(token);
}

async function start() {
  const root = /** @type {HTMLElement} */ (document.getElementById("app"));
  root.replaceChildren();
  try {
    await beginSession();
    render(html`<${App} />`, root);
  } catch (error) {
    const problem = /** @type {import("./server/api.js").ApiError} */ (error);
    const text = problem.status === 403 ? REFUSED : problem.message;
    render(html`<main class="view"><h1>localvertex</h1><${Problem} title="No session" error=${text} /></main>`, root);
  }
}

start();
