// The list of runs and custom jobs: live, filtered, in pages; several runs can be chosen and compared.

import { useEvents, useLoad } from "../server/load.js";
import { go, link } from "../ui/address.js";
import {
  Empty,
  html,
  Loading,
  label,
  Page,
  Problem,
  Select,
  Table,
  Tabs,
  useEffect,
  useRef,
  useState,
} from "../ui/ui.js";
import { LISTS, PAGE_SIZE } from "./lists.js";

const TYPING_MS = 200;

/** @param {{query: URLSearchParams}} props */
export default function Runs({ query }) {
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const tab = query.get("list") === "jobs" ? "jobs" : "runs";
  const select = (/** @type {string} */ key, /** @type {boolean} */ isSelected) => {
    const changed = new Set(selected);
    if (isSelected) changed.add(key);
    else changed.delete(key);
    setSelected(changed);
  };
  const actions = html`
    ${tab === "runs" && html`<${CompareButton} selected=${[...selected]} onClear=${() => setSelected(new Set())} />`}
    <a class="button primary" href=${link(["create"])}>Create run</a>`;
  const tabs = Object.entries(LISTS).map(([id, { title }]) => ({ id, title }));
  const show = (/** @type {string} */ id) => go(link(["runs"], { list: id === "runs" ? "" : id }));
  return html`<${Page} title="Runs" actions=${actions}>
    <${Tabs} label="Lists" tabs=${tabs} selected=${tab} onSelect=${show}>
      <${Rows} key=${tab} tab=${tab} query=${query} selected=${tab === "runs" ? selected : undefined}
        onSelect=${select} />
    <//>
  <//>`;
}

/** @param {{selected: string[], onClear: () => void}} props */
function CompareButton({ selected, onClear }) {
  const count = selected.length;
  const isEnough = count >= 2;
  const compare = () => isEnough && go(link(["compare"], { runs: selected.join(",") }));
  return html`
    ${count > 0 && html`<button class="quiet" onClick=${onClear}>Clear selection</button>`}
    <button aria-disabled=${!isEnough} title=${isEnough ? "" : "Select two or more runs"} onClick=${compare}>
      Compare${count > 0 && ` (${count})`}
    </button>`;
}

/**
 * One list with its filter and pages.
 * @param {{tab: string, query: URLSearchParams, selected?: Set<string>,
 *   onSelect: (key: string, isSelected: boolean) => void}} props
 */
function Rows({ tab, query, selected, onSelect }) {
  const list = LISTS[tab];
  const [text, state] = [query.get("text") ?? "", query.get("state") ?? ""];
  const [tokens, setTokens] = useState([""]);
  const { data, error, isLoading, isStale, reload } = useLoad(list.path(text, state, tokens[tokens.length - 1]));
  useEvents({}, { runs: reload });
  const change = (/** @type {Record<string, string>} */ values) => {
    setTokens([""]);
    go(link(["runs"], { list: tab === "runs" ? "" : tab, text, state, ...values }), { replace: true });
  };
  return html`
    <${Filter} list=${list} text=${text} state=${state} onChange=${change} />
    ${error && html`<${Problem} title="The list cannot be read" error=${error} onRetry=${reload} />`}
    ${!data && isLoading && html`<${Loading} />`}
    ${
      data &&
      html`<div aria-busy=${isLoading}>
        <${Found} list=${list} rows=${list.rows(data)} selected=${selected} onSelect=${onSelect}
          isFiltered=${Boolean(text || state)} onClear=${() => change({ text: "", state: "" })} />
        <${Pages} tokens=${tokens} setTokens=${setTokens} count=${list.rows(data).length} total=${data.total_size}
          next=${list.nextToken(data)} isStale=${isStale} />
      </div>`
    }`;
}

/**
 * @param {{list: import("./lists.js").List, text: string, state: string,
 *   onChange: (values: Record<string, string>) => void}} props
 */
function Filter({ list, text, state, onChange }) {
  const [typed, setTyped] = useState(text);
  const [sent, newest] = [useRef(text), useRef(onChange)];
  newest.current = onChange;
  useEffect(() => {
    // More may have been typed after this field sent its text.
    if (text !== sent.current) setTyped(text);
    sent.current = text;
  }, [text]);
  useEffect(() => {
    if (typed === text) return;
    const timer = setTimeout(() => {
      sent.current = typed;
      // Another state may have been chosen since.
      newest.current({ text: typed });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const type = (/** @type {any} */ event) => setTyped(event.target.value);
  const choose = (/** @type {string} */ chosen) => onChange({ state: chosen });
  return html`<div class="toolbar" role="search">
    <input type="search" placeholder="Filter by name" aria-label="Filter by name" value=${typed} onInput=${type} />
    <${Select} aria-label="State" value=${state} onChoose=${choose}
      choices=${[["", "All states"], ...list.states.map((each) => [each, label(each)])]} />
  </div>`;
}

/** @param {any} props */
function Found({ list, rows, selected, onSelect, isFiltered, onClear }) {
  if (rows.length > 0) {
    return html`<${Table} caption=${list.title} columns=${list.columns} rows=${rows} selected=${selected}
      onSelect=${onSelect} />`;
  }
  if (isFiltered) {
    return html`<${Empty} title="Nothing matches the filter"><button onClick=${onClear}>Clear filter</button><//>`;
  }
  if (list === LISTS.jobs) return html`<${Empty} title="No custom jobs were created through the API yet" />`;
  return html`<${Empty} title="No runs yet">
    <a class="button primary" href=${link(["create"])}>Create the first run</a>
    <p class="small">Runs of <code>python -m localvertex run</code> in this work directory appear here, too.</p>
  <//>`;
}

/**
 * @param {{tokens: string[], setTokens: (tokens: string[]) => void, count: number, total?: number, next: string,
 *   isStale: boolean}} props
 */
function Pages({ tokens, setTokens, count, total, next, isStale }) {
  if (count === 0 || (tokens.length === 1 && !next)) return null;
  const first = (tokens.length - 1) * PAGE_SIZE + 1;
  const shown = `${first} to ${first + count - 1}${total === undefined ? "" : ` of ${total}`}`;
  // A disabled button would lose the focus, and with it the place of a keyboard user.
  const turn = (/** @type {string[]} */ changed) => !isStale && changed.length > 0 && setTokens(changed);
  return html`<nav class="pages" aria-label="Pages">
    <span class="muted" aria-live="polite">${isStale ? "Loading…" : shown}</span>
    <button aria-disabled=${tokens.length === 1} onClick=${() => turn(tokens.slice(0, -1))}>Previous</button>
    <button aria-disabled=${!next} onClick=${() => turn(next ? [...tokens, next] : [])}>Next</button>
  </nav>`;
}
