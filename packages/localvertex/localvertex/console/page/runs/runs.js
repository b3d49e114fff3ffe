// The list of runs and custom jobs: live, filtered, in pages; several runs can be chosen and compared.

import { useEvents, useLoad, vertex } from "../server/server.js";
import {
  Duration,
  Empty,
  go,
  html,
  Input,
  Loaded,
  label,
  link,
  Page,
  replace,
  Select,
  State,
  Table,
  Tabs,
  Time,
  useEffect,
  useRef,
  useState,
} from "../ui/ui.js";

export const PAGE_SIZE = 50;

const TYPING_MS = 200;

/**
 * One of the two lists: where its rows come from, and what is shown of each.
 * @typedef {object} List
 * @property {string} title
 * @property {string} prefix - Of its states.
 * @property {(text: string, state: string, token: string) => string} path - What is read.
 * @property {(answer: any) => {rows: any[], next: string}} read - Returns the rows, and the token of the next page.
 * @property {Column[]} columns
 */

const STATES = ["RUNNING", "PENDING", "SUCCEEDED", "FAILED", "CANCELLED"];

/** Text as a filter spells it. @param {string} text */
const quoted = (text) => `"${text.replace(/["\\]/g, "\\$&")}"`;

/** @param {string} found @param {string} state @param {Record<string, string>} others */
const query = (found, state, others) =>
  `?${new URLSearchParams({
    filter: [found, state && `state=${quoted(state)}`].filter(Boolean).join(" AND "),
    ...others,
  })}`;

/** @param {string} title @param {string} path - The part of the address above an id. @param {Column[]} more */
const columns = (title, path, more) => [
  {
    title,
    isName: true,
    cell: (/** @type {any} */ { id, name, create_time, error }) => html`
      <a class="title" href=${link([path, id])}><bdi>${name}</bdi></a>
      ${name !== id && html`<div class="muted small"><bdi>${id}</bdi></div>`}
      <div class="narrow-only muted small"><${Time} at=${create_time} /></div>
      ${error && html`<div class="error small clamp">${error}</div>`}`,
  },
  { title: "State", cell: (/** @type {any} */ row) => html`<${State} state=${row.state} />` },
  ...more,
  { title: "Created", isWideOnly: true, cell: (/** @type {any} */ row) => html`<${Time} at=${row.create_time} />` },
  {
    title: "Duration",
    isNumber: true,
    isWideOnly: true,
    cell: (/** @type {any} */ row) => html`<${Duration} of=${row} />`,
  },
];

/** @type {List} */
const RUNS = {
  title: "Pipeline runs",
  prefix: "",
  path: (text, state, token) => {
    const found = ["name", "id", "pipeline"].map((field) => `${field}:${quoted(text)}`).join(" OR ");
    return `/local/runs${query(text && `(${found})`, state, { page_size: String(PAGE_SIZE), page_token: token })}`;
  },
  read: ({ runs, next_page_token }) => ({ rows: runs, next: next_page_token }),
  columns: columns("Run", "runs", [
    { title: "Pipeline", isWideOnly: true, cell: (row) => html`<bdi>${row.pipeline}</bdi>` },
    {
      title: "Started by",
      isWideOnly: true,
      cell: ({ schedule, is_own }) => {
        if (schedule) return html`<a href=${link(["schedules", schedule])}>Schedule</a>`;
        return is_own ? "Console or API" : "Terminal";
      },
    },
  ]),
};

/** @type {List} */
const JOBS = {
  title: "Custom jobs",
  prefix: "JOB_STATE_",
  path: (text, state, token) => {
    const found = text && `display_name:${quoted(text)}`;
    return vertex(`customJobs${query(found, state, { pageSize: String(PAGE_SIZE), pageToken: token })}`);
  },
  read: ({ customJobs = [], nextPageToken = "" }) => ({
    rows: customJobs.map((/** @type {any} */ { name, displayName, state, createTime, startTime, endTime, error }) => ({
      id: name.split("/").at(-1),
      name: displayName,
      state,
      create_time: createTime,
      start_time: startTime,
      end_time: endTime,
      seconds: startTime && endTime ? (Date.parse(endTime) - Date.parse(startTime)) / 1000 : null,
      error: error?.message,
    })),
    next: nextPageToken,
  }),
  columns: columns("Job", "jobs", []),
};

/** @type {Record<string, List>} */
export const LISTS = { runs: RUNS, jobs: JOBS };

/** @param {ViewProps} props */
export default function Runs({ query }) {
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const tab = query.get("list") === "jobs" ? "jobs" : "runs";
  const select = (/** @type {string} */ key, /** @type {boolean} */ isSelected) =>
    setSelected(new Set([...selected].filter((each) => each !== key).concat(isSelected ? [key] : [])));
  const actions = html`
    ${tab === "runs" && html`<${CompareButton} selected=${[...selected]} onClear=${() => setSelected(new Set())} />`}
    <a class="button primary" href="#/create">Create run</a>`;
  const tabs = Object.entries(LISTS).map(([id, { title }]) => ({ id, title }));
  return html`<${Page} title="Runs" actions=${actions}>
    <${Tabs} label="Lists" tabs=${tabs} selected=${tab}
      onSelect=${(id) => go(link(["runs"], { list: id === "runs" ? "" : id }))}>
      <${Rows} key=${tab} tab=${tab} query=${query} selected=${selected} onSelect=${tab === "runs" && select} />
    <//>
  <//>`;
}

/** @param {{selected: string[], onClear: () => void}} props */
function CompareButton({ selected, onClear }) {
  const count = selected.length;
  const isEnough = count >= 2;
  return html`
    ${count > 0 && html`<button class="quiet" onClick=${onClear}>Clear selection</button>`}
    <button aria-disabled=${!isEnough} title=${isEnough ? "" : "Select two or more runs"}
      onClick=${() => isEnough && go(link(["compare"], { runs: selected.join(",") }))}>
      Compare${count > 0 && ` (${count})`}
    </button>`;
}

/**
 * One list with its filter and pages.
 * @param {{tab: string, query: URLSearchParams, selected: Set<string>, onSelect: any}} props
 */
function Rows({ tab, query, selected, onSelect }) {
  const list = LISTS[tab];
  const [text, state] = [query.get("text") ?? "", query.get("state") ?? ""];
  const [tokens, setTokens] = useState([""]);
  const { data, error, isLoading, isStale, reload } = useLoad(list.path(text, state, tokens[tokens.length - 1]));
  useEvents({}, { runs: reload });
  const change = (/** @type {Record<string, string>} */ values) => {
    setTokens([""]);
    replace(link(["runs"], { list: tab === "runs" ? "" : tab, text, state, ...values }));
  };
  return html`
    <${Filter} list=${list} text=${text} state=${state} onChange=${change} />
    <${Loaded} title="The list cannot be read" data=${data} error=${error} reload=${reload}>${() => {
      const { rows, next } = list.read(data);
      return html`<div aria-busy=${isLoading}>
        ${
          rows.length > 0
            ? html`<${Table} caption=${list.title} columns=${list.columns} rows=${rows} selected=${selected}
                onSelect=${onSelect} />`
            : html`<${NoRows} tab=${tab} onClear=${(text || state) && (() => change({ text: "", state: "" }))} />`
        }
        <${Pages} tokens=${tokens} setTokens=${setTokens} count=${rows.length} total=${data.total_size}
          next=${next} isStale=${isStale} />
      </div>`;
    }}<//>`;
}

/** @param {{list: List, text: string, state: string, onChange: (values: Record<string, string>) => void}} props */
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
  const states = STATES.map((each) => [list.prefix + each, label(each)]);
  return html`<div class="toolbar" role="search">
    <${Input} type="search" placeholder="Filter by name" aria-label="Filter by name" value=${typed}
      onText=${setTyped} />
    <${Select} aria-label="State" value=${state} choices=${[["", "All states"], ...states]}
      onText=${(chosen) => onChange({ state: chosen })} />
  </div>`;
}

/** @param {{tab: string, onClear?: () => void}} props - `onClear` if there is a filter. */
function NoRows({ tab, onClear }) {
  if (onClear) {
    return html`<${Empty} title="Nothing matches the filter"><button onClick=${onClear}>Clear filter</button><//>`;
  }
  if (tab === "jobs") return html`<${Empty} title="No custom jobs were created through the API yet" />`;
  return html`<${Empty} title="No runs yet">
    <a class="button primary" href="#/create">Create the first run</a>
    <p class="small">Runs of <code>python -m localvertex run</code> in this work folder appear here, too.</p>
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
