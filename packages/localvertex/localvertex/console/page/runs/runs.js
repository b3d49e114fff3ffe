// The list of runs, experiments and custom jobs: live, filtered, ordered, in pages; runs are compared and deleted.

import { remove, useEvents, useLoad, vertex } from "../server/server.js";
import {
  Asking,
  Check,
  Confirm,
  Duration,
  direction,
  Empty,
  figure,
  go,
  html,
  Input,
  Loaded,
  label,
  link,
  metricNames,
  Page,
  Problem,
  plural,
  replace,
  Select,
  State,
  Table,
  Tabs,
  Time,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  Value,
} from "../ui/ui.js";

export const PAGE_SIZE = 50;

const TYPING_MS = 200;

/** Metrics and parameters that are shown until a user chooses. */
const MOST = [2, 4];

const NEWEST = "create_time desc";

const STATES = ["RUNNING", "PENDING", "SUCCEEDED", "FAILED", "CANCELLED"];

/** A condition in the text of the filter, such as `epochs=20` or `accuracy>0.9`. */
const TERM = /(\w[\w.-]*)([<>]=?|=)(\S+)/g;

/** Text that is part of a name, whatever signs it has. */
const LITERAL = /"([^"]+)"/g;

const EXAMPLE = "expected a name, one of = < > <= >= and a value, such as epochs>=20";

/** What cannot be read in the text of a filter; empty if all of it can. @param {string} text */
export function unreadable(text) {
  const bare = text.replace(LITERAL, " ");
  const [rest] = /\S*[<>=]\S*/.exec(bare.replace(TERM, " ")) ?? [];
  if (rest) return `${rest} is not a condition; ${EXAMPLE}. Text with such a sign is written "in quotes".`;
  const [term] = [...bare.matchAll(TERM)].find(([, , sign, value]) => sign !== "=" && !/^[-+.]?\d/.test(value)) ?? [];
  return term ? `${term} compares with no number; ${EXAMPLE}.` : "";
}

const EITHER = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** Text as a filter spells it. @param {string} text */
const quoted = (text) => `"${text.replace(/["\\]/g, "\\$&")}"`;

/** @param {(string | false | undefined)[]} conditions @param {Record<string, string>} others */
const query = (conditions, others) =>
  `?${new URLSearchParams({ filter: conditions.filter(Boolean).join(" AND "), ...others })}`;

/** @param {string[]} fields @param {string} test */
const some = (fields, test) => `(${fields.map((field) => field + test).join(" OR ")})`;

/** @type {RowsOf} */
const rowsOf = (noun, none, path = `/local/${noun === "Pipeline" ? "runs" : "experiments"}`) => ({
  noun,
  none,
  prefix: "",
  path: ({ text, state, pipeline, since }, order_by, page_token) => {
    const bare = text.replace(LITERAL, " ");
    const names = [bare.replace(TERM, "").trim(), ...[...text.matchAll(LITERAL)].map(([, each]) => each)];
    const conditions = [
      ...names.map((each) => each && some(["name", "id", "pipeline", "note"], `:${quoted(each)}`)),
      ...[...bare.matchAll(TERM)].map(([, name, sign, value]) =>
        some(["parameters.", "metrics.", "labels."], name + sign + quoted(value)),
      ),
      state && `state=${quoted(state)}`,
      pipeline && `pipeline=${quoted(pipeline)}`,
      since && `create_time>=${quoted(new Date(`${since}T00:00`).toISOString())}`,
    ];
    return path + query(conditions, { order_by, page_size: String(PAGE_SIZE), page_token });
  },
  read: ({ runs, next_page_token }) => ({ rows: runs, next: next_page_token }),
});

/** @type {Record<string, List>} */
export const LISTS = {
  runs: { title: "Pipeline runs", ...rowsOf("Pipeline", "No runs yet") },
  experiments: { title: "Experiments", ...rowsOf("Experiment", "No program has logged a run of an experiment yet") },
  jobs: {
    title: "Custom jobs",
    prefix: "JOB_STATE_",
    none: "No custom jobs were created through the API yet",
    path: ({ text, state }, _, pageToken) => {
      const conditions = [text && `display_name:${quoted(text)}`, state && `state=${quoted(state)}`];
      return vertex(`customJobs${query(conditions, { pageSize: String(PAGE_SIZE), pageToken })}`);
    },
    read: ({ customJobs = [], nextPageToken = "" }) => ({
      rows: customJobs.map(
        (/** @type {CustomJobResource} */ { name, displayName, state, createTime, startTime, endTime, error }) => ({
          id: name.split("/").at(-1),
          name: displayName,
          state,
          create_time: createTime,
          start_time: startTime,
          end_time: endTime,
          seconds: startTime && endTime ? (Date.parse(endTime) - Date.parse(startTime)) / 1000 : null,
          error: error?.message,
        }),
      ),
      next: nextPageToken,
    }),
  },
};

/** The fields of metrics, those with a known direction first, and of parameters that differ. @param {ListData} data */
const fieldsOf = ({ ranges = {}, parameters = [] }) => [
  metricNames(Object.values(ranges))
    .sort((one, other) => Math.abs(direction(other)) - Math.abs(direction(one)))
    .map((name) => `metrics.${name}`),
  parameters.map((/** @type {string} */ name) => `parameters.${name}`),
];

/**
 * The fields below the titles of their groups.
 * @param {string[][]} fields @param {{title: string, names: string[]}[]} groups @returns {[string, string[]][]}
 */
function groupsOf([metrics, parameters], groups = []) {
  /** @type {[string, string[]][]} */
  const named = groups.map(({ title, names }) => [title || "Parameters", names.map((each) => `parameters.${each}`)]);
  const others = parameters.filter((each) => !named.some(([, names]) => names.includes(each)));
  /** @type {[string, string[]][]} */
  const all = [["Metrics", metrics], ...named, ["Other parameters", others]];
  return all.filter(([, names]) => names.length > 0);
}

/** The name of a metric or parameter. @param {string} field */
const nameOf = (field) => field.slice(field.indexOf(".") + 1);

/** A column of a value, such as a metric or parameter. @param {string} by @param {ListData} data @returns {Column} */
function valueColumn(by, { ranges = {} }, title = nameOf(by)) {
  const [kind, name] = by.split(/\.(.*)/);
  return {
    title,
    by,
    isNumber: true,
    isWideOnly: true,
    cell: (row) => {
      const value = name ? row[kind][name] : row[kind];
      const [low, high] = (kind === "metrics" && ranges[row.pipeline]?.[name]) || [];
      const isBest = low !== high && value === [low, Number.NaN, high][direction(name) + 1];
      return html`${isBest && html`<span class="tag best">best</span>`}${
        typeof value === "object" ? html`<${Value} value=${value} />` : figure(value)
      }`;
    },
  };
}

/** The columns of a list that the console makes itself. */
const OWN = Object.entries({ name: "Job", state: "State", create_time: "Created", seconds: "Duration" }).map(
  ([by, title]) => ({ by, title }),
);

/**
 * What is shown of a field, if it is more than its value.
 * @type {(tab: string) => Record<string, Omit<Column, "title">>}
 */
const cellsOf = (tab) => ({
  name: {
    isName: true,
    cell: ({ id, name, create_time, error, note, resource }) => html`
        ${
          resource?.includes("/contexts/")
            ? html`<bdi>${name}</bdi>`
            : html`<a class="title" href=${link([tab === "jobs" ? "jobs" : "runs", id])}>${name}</a>`
        }
        ${name !== id && html`<div class="muted small"><bdi>${id}</bdi></div>`}
        ${note && html`<div class="small clamp">${note}</div>`}
        <div class="narrow-only muted small">${Time({ at: create_time })}</div>
        ${error && html`<div class="error small clamp">${error}</div>`}`,
  },
  state: { cell: State },
  pipeline: { isWideOnly: true, cell: (row) => html`<bdi>${row.pipeline}</bdi>` },
  create_time: {
    isWideOnly: true,
    cell: ({ create_time, schedule, is_own }) => html`${Time({ at: create_time })}
        ${
          tab === "runs" &&
          html`<div class="muted small">${
            schedule
              ? html`<a href=${link(["schedules", schedule])}>Schedule</a>`
              : is_own
                ? "Console or API"
                : "Terminal"
          }</div>`
        }`,
  },
  seconds: { isNumber: true, isWideOnly: true, cell: (row) => Duration({ of: row }) },
});

/**
 * The columns that the server names, and after the state those of metrics and parameters.
 * @param {string} tab @param {ListData} data @param {string[]} fields @returns {Column[]}
 */
export function columnsOf(tab, { columns = OWN, pipelines = [], ...data }, fields) {
  const { noun = "" } = LISTS[tab] ?? {};
  const cells = cellsOf(tab);
  const named = columns
    .filter(({ by }) => by !== "pipeline" || pipelines.length > (noun === "Pipeline" ? 1 : 0))
    .map(({ by, title }) =>
      by in cells ? { by, title: (by === "pipeline" && noun) || title, ...cells[by] } : valueColumn(by, data, title),
    );
  const values = fields.map((field, index) => ({ ...valueColumn(field, data), isWideOnly: index > 0 }));
  return [...named.slice(0, 2), ...values, ...named.slice(2)];
}

/** @param {ViewProps} props */
export default function Runs({ query }) {
  const [selected, setSelected] = useState(/** @type {string[]} */ ([]));
  const tab = Object.hasOwn(LISTS, query.get("list") ?? "") ? String(query.get("list")) : "runs";
  /** @type {OnSelect} */
  const select = (keys, isSelected) =>
    setSelected((before) => before.filter((each) => !keys.includes(each)).concat(isSelected ? keys : []));
  const count = selected.length;
  const isEnough = count >= 2;
  const actions = html`
    ${
      tab === "runs" &&
      html`${
        count > 0 &&
        html`<button class="quiet" onClick=${() => setSelected([])}>Clear selection</button>
          <${Asking} verb=${`Delete (${count})`} dialog=${DeleteRuns}
            of=${{ ids: selected, onDelete: select }} />`
      }
      <button aria-disabled=${!isEnough} title=${isEnough ? "" : "Select two or more runs"}
        onClick=${() => isEnough && go(link(["compare"], { runs: selected.join(",") }))}>
        Compare${count > 0 && ` (${count})`}
      </button>`
    }
    <a class="button primary" href="#/create">Create run</a>`;
  const tabs = Object.entries(LISTS).map(([id, { title }]) => ({ id, title }));
  return html`<${Page} title="Runs" actions=${actions}>
    <${Tabs} label="Lists" tabs=${tabs} selected=${tab}
      onSelect=${(id) => go(link(["runs"], { list: id === "runs" ? "" : id }))}>
      <${Rows} key=${tab} tab=${tab} query=${query} selected=${new Set(selected)}
        onSelect=${tab === "runs" && select} />
    <//>
  <//>`;
}

/** @param {DeleteProps} props */
function DeleteRuns({ ids, onDelete, onClose }) {
  const erase = async () => {
    /** @type {string[]} */
    const refused = [];
    for (const id of ids) {
      await remove(`/local/runs/${encodeURIComponent(id)}`).then(
        () => onDelete([id], false),
        ({ message }) => refused.push(message),
      );
    }
    if (refused.length) throw new Error(refused.join("\n"));
  };
  return html`<${Confirm} title=${`Delete ${plural(ids.length, "run")}?`} action="Delete" onConfirm=${erase}
      onClose=${onClose}>
    <p>Their records, logs and outputs are deleted. This cannot be undone. Runs that another run or a model needs are
      kept.</p>
    <p class="small">${ids.join(", ")}</p>
  <//>`;
}

let last = { path: /** @type {string | null} */ (""), tokens: [""], y: 0 };

/** A list; the browser remembers its order and columns. @param {RowsProps} props */
function Rows({ tab, query, selected, onSelect }) {
  const list = LISTS[tab];
  const filter = Object.fromEntries(
    ["text", "state", "pipeline", "since"].map((name) => [name, query.get(name) ?? ""]),
  );
  const [{ order, columns }, setKept] = useState({ order: NEWEST, ...JSON.parse(localStorage.getItem(tab) ?? "{}") });
  const problem = list.noun ? unreadable(filter.text) : "";
  const path = problem ? null : list.path(filter, order, "");
  const [tokens, setTokens] = useState(last.path === path ? last.tokens : [""]);
  const found = useLoad(path && list.path(filter, order, tokens[tokens.length - 1]));
  const { data, isStale, reload } = found;
  useEvents({}, { runs: ({ version }) => version !== data?.version && reload(version) });
  // A row that did not change stays the same object, which Table does not draw again.
  const known = useRef(new Map());
  const { rows, next } = useMemo(() => {
    const { rows, next } = data ? list.read(data) : { rows: [], next: "" };
    const texts = rows.map((row) => JSON.stringify(row));
    const kept = rows.map((row, index) => known.current.get(texts[index]) ?? row);
    known.current = new Map(kept.map((row, index) => [texts[index], row]));
    return { rows: kept, next };
  }, [data]);
  const fields = fieldsOf(data ?? {});
  const chosen = fields
    .flat()
    .filter((each) => (columns ?? fields.flatMap((of, at) => of.slice(0, MOST[at]))).includes(each));
  const shown = useMemo(
    () => columnsOf(tab, data ?? {}, chosen),
    [JSON.stringify([chosen, data?.ranges, data?.pipelines, data?.columns])],
  );
  last = { path, tokens, y: last.path === path ? last.y : 0 };
  useLayoutEffect(() => {
    if (!data) return;
    scrollTo(0, last.y);
    const keep = () => {
      last.y = scrollY;
    };
    addEventListener("scroll", keep);
    return () => removeEventListener("scroll", keep);
  }, [Boolean(data)]);
  const change = (/** @type {Filter} */ values) => {
    setTokens([""]);
    replace(link(["runs"], { list: tab === "runs" ? "" : tab, ...filter, ...values }));
  };
  const keep = (/** @type {object} */ values) => {
    const kept = { order, columns, ...values };
    localStorage.setItem(tab, JSON.stringify(kept));
    setKept(kept);
  };
  const sort = (/** @type {string} */ by) => {
    const isUp = order === `${by} desc` || (order !== by && direction(nameOf(by)) < 0);
    setTokens([""]);
    keep({ order: isUp ? by : `${by} desc` });
  };
  const clear = () => change({ text: "", state: "", pipeline: "", since: "" });
  return html`
    <${FilterBar} list=${list} filter=${filter} pipelines=${data?.pipelines ?? []} onChange=${change} />
    ${problem && html`<${Problem} title="The filter cannot be read" error=${problem} />`}
    ${
      !problem &&
      html`<${Loaded} title="The list cannot be read" ...${found}>${() => {
        const choose = (/** @type {string} */ field) =>
          html`<${Check} key=${field} title=${nameOf(field)} isOn=${chosen.includes(field)} onTurn=${(isOn) =>
            keep({ columns: chosen.filter((each) => each !== field).concat(isOn ? field : []) })} />`;
        if (!rows.length)
          return html`<${NoRows} list=${list} unknown=${data.unknown ?? []}
            onClear=${Object.values(filter).some(Boolean) && clear}
            onName=${(name, nearest) => change({ text: filter.text.replaceAll(name, nearest) })} />`;
        return html`<div aria-busy=${isStale}>
        ${
          fields.flat().length > 0 &&
          html`<details class="choice"><summary>Columns</summary>${groupsOf(fields, data.groups).map(
            ([title, names]) => html`<fieldset key=${title}><legend>${title}</legend>
              <div class="actions">${names.map(choose)}</div></fieldset>`,
          )}</details>`
        }
        <${Table} caption=${list.title} columns=${shown} rows=${rows} selected=${selected}
          hasAll onSelect=${onSelect} order=${order} onOrder=${list.noun && sort} />
        <${Pages} tokens=${tokens} setTokens=${setTokens} count=${rows.length} total=${data.total_size}
          next=${next} isStale=${isStale} />
      </div>`;
      }}<//>`
    }`;
}

/** @param {FilterProps} props */
function FilterBar({ list: { prefix, noun }, filter: { text, state, pipeline, since }, pipelines, onChange }) {
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
  const states = STATES.map((each) => [prefix + each, label(each)]);
  return html`<div class="toolbar" role="search">
    <${Input} type="search" placeholder=${noun ? "Name, or epochs=20, accuracy>0.9" : "Name"} value=${typed}
      aria-label=${`Filter by name${noun ? ", parameter, metric or label" : ""}`} onText=${setTyped} />
    <${Select} aria-label="State" value=${state} choices=${[["", "All states"], ...states]}
      onText=${(chosen) => onChange({ state: chosen })} />
    ${
      pipelines.length > 1 &&
      html`<${Select} aria-label=${noun} value=${pipeline} onText=${(chosen) => onChange({ pipeline: chosen })}
        choices=${[["", `All ${noun?.toLowerCase()}s`], ...pipelines]} />`
    }
    ${
      noun &&
      html`<label>Since <${Input} type="date" value=${since} onText=${(day) => onChange({ since: day })} /></label>`
    }
  </div>`;
}

/** @param {NoRowsProps} props */
function NoRows({ list, unknown: [unknown], onClear, onName }) {
  if (unknown) {
    const { name, fields, nearest } = unknown;
    const kinds = EITHER.format(fields.map((each) => each.slice(0, -1)));
    return html`<${Empty} title=${html`No run has a ${kinds} named <bdi>${name}</bdi>`}>
      ${
        nearest &&
        html`<button onClick=${() => onName(name, nearest)}><span>Use <bdi>${nearest}</bdi> instead</span></button>`
      }
      <button onClick=${onClear}>Clear filter</button><//>`;
  }
  if (onClear) {
    return html`<${Empty} title="Nothing matches the filter"><button onClick=${onClear}>Clear filter</button><//>`;
  }
  return html`<${Empty} title=${list.none}>${
    list === LISTS.runs &&
    html`<a class="button primary" href="#/create">Create the first run</a>
      <p class="small">Runs of <code>python -m localvertex run</code> in this work folder appear here, too.</p>`
  }<//>`;
}

/** @param {PagesProps} props */
function Pages({ tokens, setTokens, count, total, next, isStale }) {
  if (tokens.length === 1 && !next) return null;
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
