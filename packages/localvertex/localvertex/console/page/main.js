// The page: the session, navigation, the view of the address, and a line while the server does not answer.

import { route } from "./routes.js";
import { get, onConnection, openSession } from "./server/server.js";
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./ui/html.js";
import { Loaded, Notice, Problem } from "./ui/page.js";

/** Title, views and icon; an entry leads to the first of its views. @type {Array<[string, string[], string]>} */
const ENTRIES = [
  ["Runs", ["runs", "run", "job"], "M3 4h12M3 9h12M3 14h8"],
  ["Create run", ["create"], "M9 3v12M3 9h12"],
  ["Compare", ["compare"], "M4 15V8M9 15V3M14 15v-5"],
  ["Schedules", ["schedules", "schedule", "new schedule"], "M9 5v4l3 2M15.5 9a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0Z"],
  ["Models", ["models", "model"], "M9 2.5 15 6v6l-6 3.5L3 12V6l6-3.5ZM3 6l6 3.5L15 6M9 9.5v6"],
];

/** @param {{server: any}} props */
function App({ server }) {
  const [place, setPlace] = useState(() => route(location.hash));
  const [isOpen, setIsOpen] = useState(false);
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const shown = useRef(subject(place));
  useEffect(() => {
    const change = () => setPlace(route(location.hash));
    addEventListener("hashchange", change);
    // The address may have changed since the first drawing.
    change();
    return () => removeEventListener("hashchange", change);
  }, []);
  useEffect(() => {
    if (shown.current === subject(place)) return;
    shown.current = subject(place);
    setIsOpen(false);
    scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [place]);
  const skip = (/** @type {Event} */ event) => {
    event.preventDefault();
    main.current?.focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <${Top} workDir=${server.work_dir} isOpen=${isOpen} onToggle=${() => setIsOpen(!isOpen)} />
    <${Navigation} current=${place.name} isOpen=${isOpen} onLeave=${() => setIsOpen(false)} />
    <main id="main" class="view" tabindex="-1" ref=${main}>
      <${Connection} />
      <${View} key=${subject(place)} place=${place} />
    </main>`;
}

/** What a place shows; the same view shows another task of a run. @param {Route} place */
const subject = (place) => `${place.name} ${place.params.id ?? ""} ${place.params.version ?? ""}`;

/** @param {TopProps} props */
function Top({ workDir, isOpen, onToggle }) {
  return html`<header class="top">
    <button class="icon menu" aria-expanded=${isOpen} aria-controls="navigation" onClick=${onToggle}>
      <svg viewBox="0 0 18 18" aria-hidden="true"><path d="M2 4.5h14M2 9h14M2 13.5h14" /></svg>
      <span class="hidden">Menu</span>
    </button>
    <a class="brand" href="#/runs">localvertex</a>
    <span class="work-dir mono" title=${workDir}>${workDir}</span>
  </header>`;
}

/** @param {NavigationProps} props */
function Navigation({ current, isOpen, onLeave }) {
  const close = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && onLeave();
  return html`<nav id="navigation" class=${isOpen ? "open" : ""} aria-label="Main" onClick=${onLeave}
      onKeyDown=${close}>
    <ul>
      ${ENTRIES.map(
        ([title, views, icon]) => html`<li key=${title}>
          <a href=${`#/${views[0]}`} aria-current=${views.includes(current) ? "page" : undefined}>
            <svg viewBox="0 0 18 18" aria-hidden="true"><path d=${icon} /></svg>${title}
          </a>
        </li>`,
      )}
    </ul>
  </nav>`;
}

/** A line that warns while the shown data may be out of date. */
function Connection() {
  const [problem, setProblem] = useState("");
  useEffect(() => onConnection(setProblem), []);
  return html`<div aria-live="polite">${problem && html`<${Notice} kind="warn">${problem}<//>`}</div>`;
}

const MISSING = "Its scripts could not be loaded. Is the server running?";

/** Load the whole page again if the server answers: browsers may remember that a script could not be loaded. */
const reload = () =>
  get("/local/server").then(
    () => location.reload(),
    () => {},
  );

/** The view of a place; its file is loaded when it is first shown. @param {{place: Route}} props */
function View({ place }) {
  const [Shown, setShown] = useState(/** @type {any} */ (null));
  const [isMissing, setIsMissing] = useState(false);
  const [failure] = useErrorBoundary((error) => console.error(error));
  useEffect(() => {
    place.load().then(
      (module) => setShown(() => module.default),
      () => setIsMissing(true),
    );
  }, []);
  const title = "This page cannot be shown";
  if (failure) return html`<${Problem} title=${title} error=${failure} />`;
  if (isMissing) return html`<${Problem} title=${title} error=${MISSING} onRetry=${reload} />`;
  if (!Shown) return html`<${Loaded} />`;
  return html`<${Shown} params=${place.params} query=${place.query} />`;
}

const START = "#token=";

const REFUSED =
  "This browser may not use the server yet. Open the address that the server printed, which ends in #token=..., " +
  "or run: python -m localvertex console";

/** Exchange the token of the address for a cookie, if it has one, and return what the server is. */
async function beginSession() {
  if (location.hash.startsWith(START)) {
    const token = location.hash.slice(START.length);
    history.replaceState(null, "", location.pathname);
    await openSession(token);
  }
  return get("/local/server");
}

async function start() {
  const root = /** @type {HTMLElement} */ (document.getElementById("app"));
  root.replaceChildren();
  try {
    const session = beginSession();
    // The scripts of the view come while the server answers; the view shows why they do not.
    route(location.hash)
      .load()
      .catch(() => {});
    render(html`<${App} server=${await session} />`, root);
  } catch (error) {
    const { status, message } = /** @type {any} */ (error);
    const text = status === 403 ? REFUSED : message;
    render(html`<main class="view"><h1>localvertex</h1><${Problem} title="No session" error=${text} /></main>`, root);
  }
}

start();
