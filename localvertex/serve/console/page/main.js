// The start of the page: the session, then the view of the address.
import { html, render, useEffect, useState } from "./html.js";
import { route } from "./routes.js";
import { beginSession } from "./session.js";

function App() {
  const [place, setPlace] = useState(route(location.hash));
  const [View, setView] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const follow = () => setPlace(route(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    place.load().then((module) => setView(() => module.default));
  }, [place.name]);
  return View && html`<${View} params=${place.params} query=${place.query} />`;
}

async function start() {
  const problem = await beginSession();
  render(problem ? html`<p role="alert">${problem}</p>` : html`<${App} />`, document.getElementById("app"));
}

start();
