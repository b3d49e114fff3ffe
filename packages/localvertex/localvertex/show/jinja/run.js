// The pages inside this one cannot run scripts: each frame gets the height of its content from here.
for (const frame of document.querySelectorAll("iframe")) {
  frame.addEventListener("load", () => {
    // Inside the console this page itself has an origin of its own, and reads no frame.
    const page = frame.contentDocument?.documentElement;
    if (!page) return;
    page.style.overflowY = "hidden";
    const fit = () => { frame.style.height = Math.max(80, Math.ceil(page.getBoundingClientRect().height) + 2) + "px"; };
    new ResizeObserver(fit).observe(page);
    fit();
  });
}
// A link to a folded part unfolds it.
const unfold = () => {
  const target = document.getElementById(location.hash.slice(1));
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
