// The HTML of a Markdown text as elements of this page: only the tags below, and no attribute but https links.
import { html } from "../ui/ui.js";

const TAGS = new Set(
  "P H1 H2 H3 H4 H5 H6 UL OL LI A EM STRONG S CODE PRE BLOCKQUOTE HR BR TABLE THEAD TBODY TR TH TD".split(" "),
);

/** Return what an HTML text shows; nothing in it is run or loaded. @param {string} text */
export const markup = (text) => children(new DOMParser().parseFromString(text, "text/html").body);

/** @param {Node} node @returns {any[]} */
const children = (node) => [...node.childNodes].map(element);

/** @param {Node} node @returns {any} */
function element(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.textContent;
  if (!(node instanceof Element) || !TAGS.has(node.tagName)) return children(node);
  const tag = node.tagName.toLowerCase();
  const href = node.getAttribute("href") ?? "";
  if (tag === "a" && href.startsWith("https://"))
    return html`<a href=${href} rel="noreferrer" target="_blank">${children(node)}</a>`;
  if (["hr", "br"].includes(tag)) return html`<${tag} />`;
  return html`<${tag === "a" ? "span" : tag}>${children(node)}<//>`;
}
