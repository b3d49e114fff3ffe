// The start of the page: the session, then the view of the address.
import { openSession } from "./api.js";
import { App } from "./app.js";
import { html, render } from "./html.js";
import { Problem } from "./ui/problem.js";

async function start() {
  const root = /** @type {HTMLElement} */ (document.getElementById("app"));
  const token = location.hash.startsWith("#token=") ? location.hash.slice(7) : "";
  try {
    if (token) {
      history.replaceState(null, "", location.pathname);
      await openSession(token);
    }
    render(html`<${App} />`, root);
  } catch (error) {
    render(html`<main class="view"><${Problem} title="No session" error=${error} /></main>`, root);
  }
}

start();
