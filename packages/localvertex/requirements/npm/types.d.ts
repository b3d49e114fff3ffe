// Types of what the server answers and of what modules share. They are global: JSDoc of every file may name them.

/** The answer of `GET /local/server`. */
interface ServerInfo {
  work_dir: string;
  regions: string[];
}

/** An entry of `GET /local/files`. */
interface CompiledFile {
  path: string;
  bytes: number;
  seconds: number;
}

/** A parameter in the form; values are text as it is written there, null where there is none. */
interface ParameterInfo {
  name: string;
  type: string;
  description: string;
  default: string | null;
  is_required: boolean;
  literals: string[];
  /** Values that the description of a text lists; others are possible. */
  documented: string[];
  example: string;
  value: string | null;
}

interface MachineFinding {
  rule: string;
  severity: "error" | "warning";
  path: string;
  message: string;
  alternatives: string[];
}

interface MachineFindings {
  findings: MachineFinding[];
  notes: string[];
}

/** The answer of `POST /local/check` about a form; only `errors` if it has any. */
interface CheckAnswer {
  errors: { field: string; message: string }[];
  refusals: string[];
  notes: string[];
  machine_check: MachineFindings;
}

/** The answer of `POST /local/check` about a pipeline. */
interface Overview extends CheckAnswer {
  path: string;
  content: string;
  pipeline: string;
  description: string;
  /** Names of the artifacts that a run needs. */
  input_artifacts: string[];
  /** As a command names it; empty for the default. */
  work_dir: string;
  region: string;
  parameters: ParameterInfo[];
  /** Each parameter's name is in one of them; those of `more` are folded. */
  groups: { title: string; names: string[]; more: string[] }[];
  /** What the earlier run had and this one does not. */
  warnings: string[];
  settings: { display_name: string; labels: Record<string, string>; fail_fast: boolean; use_cache: boolean };
}

/** What is written in the form of a new run. */
interface DraftState {
  parameters: Map<string, string>;
  settings: { display_name: string; labels: string; fail_fast: boolean; use_cache: boolean; region: string };
}

/** A change of the form: `name` is a parameter or setting; a `text` of null resets it. */
interface Change {
  part: "parameters" | "settings";
  name?: string;
  text: any;
}

interface CheckState {
  answer: CheckAnswer;
  errors: Map<string, string>;
  error: Error | null;
}

/** What a view gets of its address. */
interface ViewProps {
  params: Record<string, string>;
  query: URLSearchParams;
}

/** A value in markup; a function gets whatever the element or component calls it with. */
type Part = ((...values: any[]) => any) | Column[] | object | string | number | boolean | null | undefined;

/** A column of a table. */
interface Column {
  /** The heading. */
  title: string;
  /** What is shown in place of the title. */
  heading?: any;
  /** The content of a cell. */
  cell: (row: any, index: number) => any;
  /** Aligned to the right. */
  isNumber?: boolean;
  /** Left out on narrow screens. */
  isWideOnly?: boolean;
  /** The heading of the row. */
  isName?: boolean;
  /** The field by which rows are ordered when the heading is clicked. */
  by?: string;
}

interface TableProps {
  /** What the table contains, for screen readers. */
  caption: string;
  columns: Column[];
  rows: any[];
  /** By default the `id` of a row, or its place. */
  keyOf?: (row: any, index: number) => string;
  /** The keys of the selected rows. */
  selected?: Set<string>;
  /** Without it rows cannot be selected. */
  onSelect?: OnSelect;
  /** Whether all rows can be selected at once. */
  hasAll?: boolean;
  /** Whether the keyboard can scroll it: a table without links that may be too wide. */
  isRegion?: boolean;
  /** Rows that are shown until a user asks for all. */
  most?: number;
  /** What a row is called for screen readers, where rows can be selected. */
  nameOf?: (row: any) => string;
  /** The field by which rows are ordered, with ` desc` if the largest come first. */
  order?: string;
  /** Called with the field of a heading that was clicked. */
  onOrder?: (by: string) => void;
}

type OnSelect = (keys: string[], isSelected: boolean) => void;

/** `text`, `state`, `pipeline` and `since`, a day; as in the address. */
type Filter = Record<string, string>;

/** What a list answers besides its rows. */
interface ListData {
  columns?: { by: string; title: string }[];
  pipelines?: string[];
  /** Of each pipeline the smallest and the largest value of each metric. */
  ranges?: Record<string, Record<string, [number, number]>>;
  /** Names of those that differ. */
  parameters?: string[];
}

/** A CustomJob of the API. */
interface CustomJobResource {
  name: string;
  displayName: string;
  state: string;
  createTime: string;
  startTime?: string;
  endTime?: string;
  error?: { message: string };
}

type ArtifactFile = { name: string; size: number; is_image: boolean };

interface Mistake {
  file_name: string;
  label: string;
  predicted: string;
  probability: number;
  image: string;
}

/** What an address shows; `load` imports its view. */
interface Route {
  name: string;
  params: Record<string, string>;
  query: URLSearchParams;
  load: () => Promise<{ default: any }>;
}

/** One of the lists of runs, experiments and custom jobs. */
interface List {
  title: string;
  /** What `pipeline` of a row is. */
  noun?: string;
  /** Of its states. */
  prefix: string;
  /** Shown if the list is empty. */
  none: string;
  /** Returns the address of a page. */
  path: (filter: Filter, order: string, token: string) => string;
  /** Returns the rows of an answer, and the token of the next page. */
  read: (answer: any) => { rows: any[]; next: string };
}

/** One list with its filter and pages. */
interface RowsProps {
  tab: string;
  query: URLSearchParams;
  selected: Set<string>;
  onSelect: any;
}

interface FilterProps {
  list: List;
  filter: Filter;
  pipelines: string[];
  onChange: (values: Filter) => void;
}

interface PagesProps {
  /** Of the pages up to the present one. */
  tokens: string[];
  setTokens: (tokens: string[]) => void;
  /** Of the rows of the page. */
  count: number;
  total?: number;
  next: string;
  isStale: boolean;
}

interface DeleteProps {
  ids: string[];
  onDelete: OnSelect;
  onClose: () => void;
}

/** The records of runs with the rows of a table about them. */
interface ReportData {
  run: any;
  graph: any;
  /** The worst ones by the path of their step. */
  mistakes: Record<string, any[]>;
  /** Why there is no graph. */
  problem: string;
  /** The command. */
  resume: string;
  /** Those of the stream. */
  events: [string, any][];
}

/** Title, class of its colours, and the path of its symbol. */
type StateLook = [string, "good" | "bad" | "busy" | "idle" | "warn", string];

type RowsOf = (noun: string, none: string, path?: string) => Omit<List, "title">;

/** What the page of a run gets: its record, and what the server knows besides. */
interface ShownRun extends RunRecord {
  id: string;
  name: string;
  state: string;
  pipeline_name: string;
  create_time: string | null;
  schedule?: string | null;
  stopped_by_signal?: number | null;
  metrics: (RunRecord["metrics"][number] & { value: any })[];
  models: (RunRecord["models"][number] & { task: string })[];
  main_metric?: string | null;
  /** Why the record cannot be read. */
  problem?: string;
}

type ShownEntry = EntryRecord & { cache_hit?: boolean };

/** A run with what its custom jobs answer, by the paths of their steps. */
type ComparedRun = ShownRun & { jobs: Map<string, any> };

/** A run in the address, which the list may not have. */
type ComparedRow = Pick<RunRow, "id" | "name"> & Partial<RunRow>;

type ParameterRow = { name: string; values: { is_set: boolean; value: any }[]; differs: boolean };

/** Its values, their differences from one run, and the places of the best. */
interface MetricRow {
  task: string;
  name: string;
  title: string;
  values: any[];
  differences: (number | null)[];
  best: number[];
}

type StepRow = { path: string; title: string; cells: (EntryRecord | null)[] };

interface ComparisonProps<Row> {
  runs: ComparedRun[];
  rows: Row[];
}

type OnText = (text: string) => void;
type OnChange = (change: Change) => void;

/** A field of a form; all other properties are those of its control. */
interface FieldProps {
  id: string;
  name: string;
  /** What it is for. */
  hint?: string;
  /** What is wrong. */
  error?: string;
  /** Shown beside the name. */
  tags?: any;
  /** Shown below the control. */
  after?: any;
  /** The control, which gets all other properties, and those that name and describe it. */
  as?: any;
}

/** Called with the content of the events of a stream, by their names. */
type Handlers = Record<string, (data: any) => void>;

/** Where faults are requested: of a step or of a job of the API. */
type Target = { path: string; task?: string };

/** Kind, start and end in seconds from the start of the job. */
type Segment = [string, number, number];

/** A replica with what is derived of it. */
type ShownReplica = ReplicaStatus & { condition: string; exit_codes: number[] };

/** The newest `job` event. */
interface ShownJob {
  status: CustomJobStatus & { replicas: ShownReplica[]; is_running: boolean };
  goodput: Goodput;
  timeline: Record<string, Segment[]>;
}

/** A custom job and one log, as their events tell. */
interface Live {
  /** The newest `job` event; null until the first. */
  job: any;
  /** The points of its replicas' curves. */
  steps: Map<string, any>;
  log: LogWindow;
  setLog: SetLog;
}

/** Step, seconds since 1970, and a figure for each name of the curve; early points may have fewer. */
type Point = (number | null)[];

/** What the server sends of a replica's curves; `evaluated` are points of validation, `resumes` time and step. */
interface Curve {
  names: string[];
  points: Point[];
  evaluated: Point[];
  /** Of a proof: the steps at which a run resumed and differs first. */
  marks?: (number | null)[];
  resumes: [number, number][];
}

/** Points of a replica since those that were sent before. */
type NewPoints = Curve & { replica: string; is_first: boolean };

type UPlot = import("uplot");

/** The values of a line by x; null is a gap. */
type Pairs = [any, number | null | undefined][];

/** What is drawn in one colour. */
interface Source {
  curve: Curve;
  /** Of its time, in seconds since 1970. */
  start: number;
  /** A variable of the style sheets; without it there is one source. */
  colour?: string;
  dash?: number[];
  /** Shown before its values. */
  mark?: any;
  /** The same in words. */
  spoken?: string;
}

/** The value of a variable of the style sheets. */
type Colour = (name: string) => string;

interface Plot {
  title: string;
  /** What x is. */
  over: string;
  /** The values of x, then the values of each line. */
  data: any;
  /** How each line is drawn. */
  lines: (colour: Colour) => object[];
  /** Whether y is logarithmic. */
  isLog?: boolean;
  /** What the axes have besides their colours. */
  axes?: object[];
  /** The index of the values at the pointer, or of the last ones, and how they are shown and spoken. */
  read: (index: number | null) => { at: number; shown: any; text: string };
  /** Draws further parts. */
  onDraw?: (plot: any, colour: Colour) => void;
}

/** A part of a log; offsets count bytes. */
interface Block {
  offset: number;
  end: number;
  text: string;
  lines: number;
}

interface LogWindow {
  file: string;
  /** The names of all logs of the step. */
  files: string[];
  blocks: Block[];
  /** Offset in bytes after the last block. */
  end: number;
  /** Of the whole file in bytes. */
  size: number;
  /** Lines that are kept. */
  most: number;
  /** Whether the server has sent anything of the log. */
  isRead: boolean;
  /** Of the file. */
  inode: number;
  /** Changes when the file was replaced or truncated. */
  round: number;
}

type SetLog = (change: (log: LogWindow) => LogWindow) => void;

/** The lines of a log with a text. */
interface Matches {
  /** In bytes, ascending. */
  offsets: number[];
  /** Of the file when it was searched; -1 before the end of the search. */
  size: number;
  error: string;
}

type Box = { current: HTMLElement | null };

/** A rectangle of a drawing. */
type Place = { x: number; y: number; width: number; height: number };

/** What the server draws: boxes inside boxes, and lines. */
interface Drawing {
  boxes: GraphBox[];
  lines: string[];
}

interface GraphBox extends Drawing, Place {
  id: string;
  name: string;
  title: string;
  note: string;
  kind: string;
  is_open: boolean;
  /** Ids of the groups that it alone is in. */
  groups: string[];
}

/** The part of a box that can be chosen, in the coordinates of the whole drawing. */
type PlacedBox = Place & { id: string; box: GraphBox };

/** What is read of an entry of a record. */
interface Entry {
  path: string;
  kind: string;
  state: string;
  seconds: number;
  start_time: string | null;
  inputs?: any;
}

/** An entry with its box, and the iterations that contain it: the id of each loop and the number of its item. */
type PlacedEntry = { entry: Entry; box: string; items: Array<[string, string]> };

interface EntryPlaces {
  byBox: Map<string, PlacedEntry[]>;
  byLoop: Map<string, PlacedEntry[]>;
  byPath: Map<string, PlacedEntry>;
}

interface BoxState {
  state: string;
  text: string;
  path: string;
  since: string | null;
}

/** The number of an item by the id of its loop; all items of the other loops. */
type Chosen = Map<string, string>;

/** What a box of the graph needs besides its place. */
interface Look {
  states: Map<string, BoxState>;
  /** Id of the selected box. */
  selected: string;
  /** Id of the box that Tab comes to. */
  current: string;
  onPick: (id: string) => void;
  onFocus: (id: string) => void;
  /** Without it groups cannot be folded. */
  onFold?: (id: string) => void;
  /** The choice of an iteration, for the header of a loop. */
  items: (box: any) => any;
}

interface ScheduleActionsProps {
  schedule: Schedule;
  onChange: () => void;
  onDelete: () => void;
}

interface ResumeProps {
  schedule: Schedule;
  onDone: () => void;
  onClose: () => void;
}

interface DraftProps {
  overview: Overview;
  server: ServerInfo | null;
}

/** Both of the cron. */
interface TimesProps {
  times: When;
  setTimes: (times: When) => void;
  error: string;
  meaning: any;
}

/** `title` is above the times. */
interface CronMeaningProps {
  meaning: Meaning;
  title?: string;
}

interface FiguresProps {
  metrics: Record<string, any>;
}

interface EditAliasesProps {
  model: any;
  onChange: () => void;
  onClose: () => void;
}

interface DeleteVersionProps {
  model: any;
  onDelete: (isModelLeft: boolean) => void;
  onClose: () => void;
}

/** The rows of both tables. */
interface ScatterProps {
  runs: ComparedRun[];
  parameters: ParameterRow[];
  metrics: MetricRow[];
}

interface CurvesProps {
  steps: any[];
  curves: {task: string, series: any[]}[];
}

interface ComparedProps {
  caption: string;
  rows: any[];
  /** What is compared. */
  of: { title: string; heading?: any }[];
  /** The heading of a row; `title` is that of their column. */
  name: (row: any) => any;
  title?: string;
  cell: (row: any, index: number) => any;
  isNumber?: boolean;
  /** Further columns. */
  more?: Column[];
}

interface ElapsedProps {
  since: string;
  /** Seconds since then that do not count. */
  idle?: number;
}

interface NoRowsProps {
  list: List;
  /** Names in conditions of the filter that no run has. */
  unknown: { name: string; fields: string[]; nearest: string }[];
  /** If there is a filter. */
  onClear?: () => void;
  onName: (name: string, nearest: string) => void;
}

interface TopProps {
  workDir: string;
  isOpen: boolean;
  onToggle: () => void;
}

interface NavigationProps {
  current: string;
  isOpen: boolean;
  onLeave: () => void;
}

/** `heading` is what is shown in place of the title's text; `parent` is the title and the address of the view above. */
interface PageProps {
  title: string;
  heading?: any;
  state?: string;
  parent?: string[];
  actions?: any;
  children?: any;
}

interface SectionProps {
  title: any;
  actions?: any;
  children?: any;
}

interface LoadedProps {
  title?: string;
  data?: any;
  error?: any;
  reload?: () => void;
  children?: (data: any) => any;
}

interface EmptyProps {
  title: string;
  children?: any;
}

interface ProblemProps {
  title?: string;
  error: Error | string;
  onRetry?: () => void;
}

interface NoticeProps {
  kind?: "info" | "warn" | "bad";
  title?: string;
  children?: any;
}

interface FrameProps {
  src: string;
  title: string;
}

interface LongTextProps {
  text: string;
  look: string;
  id?: string;
  children?: any;
}

interface InputProps {
  onText: OnText;
  [attribute: string]: any;
}

interface TextAreaProps {
  onText: OnText;
  [attribute: string]: any;
}

interface SelectProps {
  value: string;
  choices: (string | string[])[];
  onText: OnText;
  [attribute: string]: any;
}

interface CheckProps {
  title: string;
  isOn: boolean;
  onTurn: (isOn: boolean) => void;
}

/** `children` is the panel of the selected tab; a `count` is shown beside a title. */
interface TabsProps {
  label: string;
  tabs: {id: string, title: string, count?: number}[];
  selected: string;
  onSelect: OnText;
  children?: any;
}

interface DialogProps {
  title: string;
  onClose: () => void;
  actions?: any;
  children?: any;
}

/** `action` is the verb on the button. The dialog closes when `onConfirm` has worked. */
interface ConfirmProps {
  title: string;
  action: string;
  onConfirm: () => Promise<any>;
  onClose: () => void;
  isDangerous?: boolean;
  children?: any;
}

/** `dialog` is the component, which gets `onClose` and all of `of`. */
interface AskingProps {
  verb: string;
  dialog: any;
  of?: object;
  [attribute: string]: any;
}

/** Other attributes go to the file input. */
interface DropZoneProps {
  action: string;
  look?: string;
  onFiles: (files: FileList) => void;
  children?: any;
  [attribute: string]: any;
}

/** `look`: the classes; rows by default. */
interface ValuesProps {
  values: Record<string, any> | [any, any][];
  look?: string;
}

interface FactsProps {
  facts: any[];
  look?: string;
}

interface CopyProps {
  text: string;
  title?: string;
}

interface StateProps {
  state: string;
  text?: string;
}

interface Schedule {
  name: string;
  displayName: string;
  state: string;
  nextRunTime?: string;
  zone: string;
}

type VersionMetrics = { metrics: Record<string, any>; run_metrics: Record<string, any> };

/** A version of a model in the registry. */
interface ModelVersion extends VersionMetrics {
  id: string;
  version: string;
  aliases: string[];
  run: string;
  datasets: string[];
  create_time: string;
  description: string;
  version_description: string;
  parameters: Record<string, any>;
  labels?: Record<string, string>;
  container?: Record<string, any> | null;
  num_bytes: number;
}

/** A model of the list; `shown` is the version in use. */
interface ListedModel {
  id: string;
  shown: ModelVersion;
}

/** When a new schedule fires. */
interface When {
  name: string;
  expression: string;
  zone: string;
  limit: string;
  isQueued: boolean;
}

/** What a cron means. */
interface Meaning {
  zone: string;
  next: string[];
}

/** A request that the server refused, with its messages about single fields; `status` is 0 if it did not answer. */
interface Refusal extends Error {
  status: number;
  details: { field: string; message: string }[];
}

type Ask = (method: string, path: string, body?: object, headers?: Record<string, string>) => Promise<any>;

/** Returns a function that ends it. */
type OnConnection = (listener: (problem: string) => void) => () => void;

/**
 * The query has `run`, `log`, `file` and `job`, and is empty for the list of runs. After the event `end` nothing more
 * comes. Returns a function that closes the stream.
 */
type Follow = (query: Record<string, string>, handlers: Handlers) => () => void;

/** Along one direction: where a part begins, how long it is, and the room. */
type Along = (at: number, length: number, room: number) => number;

/** Nothing is read while the path is null. */
type UseLoad = (path: string | null) => Load;

/** What was read. */
interface Load {
  data: any;
  error: Refusal | null;
  /** An answer of at least this version need not be read again. */
  reload: (version?: string) => void;
  /** Whether the data belongs to another path. */
  isStale: boolean;
}

/** A body is posted when it is another object and not null; `delay` is the time without a change in milliseconds. */
type UsePost = (path: string, body: object | null, delay?: number) => Posted;

interface Posted {
  answer: any;
  error: Refusal | null;
  /** Whether both belong to this body. */
  isCurrent: boolean;
}

/** Nothing is followed while the query is null; another query opens another stream. The newest handlers are called. */
type UseEvents = (query: Record<string, string> | null, handlers: Handlers) => void;

type Action = (...values: any[]) => Promise<any>;

type UseAction = (action: Action) => [Action, { isBusy: boolean; error: Refusal | null }];

/** `text` is undefined while the default holds. */
interface ParameterFieldProps {
  parameter: ParameterInfo;
  text: string | undefined;
  error: string | undefined;
  onChange: OnChange;
}

interface SettingsProps {
  draft: DraftState;
  errors: Map<string, string>;
  onChange: OnChange;
}

/** `isTried`: show also that required values are missing. */
interface FormProps {
  overview: Overview;
  draft: DraftState;
  errors: Map<string, string>;
  isTried: boolean;
  onChange: (change: Change) => void;
}

interface RefusalsProps {
  refusals: string[];
  notes: string[];
}

interface ArtifactProps {
  run: string;
  place: Record<string, string>;
  artifact: any;
  isOpen: boolean;
}

interface ContentProps {
  view: any;
  href: (file: string) => string;
}

interface PreviewProps {
  text: {text: string, is_cut: boolean};
  name: string;
}

interface FilesProps {
  view: any;
  href: (file: string, isDownload: boolean) => string;
}

interface MatrixProps {
  matrix: {names: string[], rows: number[][]};
}

interface RocProps {
  roc: [number, number][];
}

type Component = (props: any) => any;

interface TrainingProps {
  job: any;
  steps: Map<string, any>;
  only?: string;
}

interface NameProps {
  replica: any;
  logOf: (file: string) => string;
}

interface LaneProps {
  name: string;
  segments: Segment[];
  events: JobEvent[];
  total: number;
}

interface LegendProps {
  timeline: Record<string, Segment[]>;
  seconds: Record<string, number>;
  total: number;
}

interface FaultsProps {
  target: Target;
  replica: {name: string, condition: string};
}

interface FaultProps {
  target: Target;
  name: string;
  action: string;
  onClose: () => void;
}

interface CancelProps {
  name: string;
  onClose: () => void;
}

interface BoxProps {
  box: GraphBox;
  look: Look;
}

interface OwnProps {
  box: GraphBox;
  look: Look;
  state: BoxState;
}

interface ButtonProps {
  box: GraphBox;
  look: Look;
  state: BoxState;
  height: number;
  children?: any;
}

interface FoldProps {
  box: GraphBox;
  look: Look;
  height: number;
}

interface BarProps {
  counts: Array<[string, number]>;
  viewport: {current: import("../../localvertex/console/page/graph/viewport.js").Viewport | null};
}

interface ItemsProps {
  box: any;
  entries: EntryPlaces;
  chosen: Chosen;
  onChoose: (chosen: Chosen) => void;
}

interface PlaceProps {
  log: LogWindow;
  at: number | null;
  addressOf: (change: {file: string, at: string}) => string;
}

interface SearchProps {
  found: ReturnType<typeof import("../../localvertex/console/page/logs/search.js").useSearch>;
  at: number | null;
}

interface GraphProps {
  /** What the server answered. */
  graph: any;
  /** The entries of the record, parents first; without them it has not run. */
  tasks?: any[];
  /** Whether the run has. */
  hasEnded?: boolean;
  /** The path of the selected task. */
  selected?: string;
  /** Called with the path of a task; of several, with the worst one. */
  onSelect?: (path: string) => void;
  /** Folds or unfolds a group: `toggle` of `useGraph`. */
  onToggle?: (id: string) => void;
}

/** Charts of all figures, or `only` of one. */
interface ChartsProps {
  title: any;
  sources: Source[];
  /** The first one. */
  axis: string;
  actions?: any;
  only?: string;
  children?: any;
}

interface FigureProps {
  name: string;
  sources: Source[];
  axis: string;
  smoothing: number;
  isLog: boolean;
}

interface JobCurvesProps {
  steps: Map<string, Curve>;
  /** Of the job, in seconds since 1970. */
  start: number;
  /** Of the replicas, the primary first. */
  names: string[];
  only?: string;
}

interface StepProps {
  run: any;
  entry: any;
  job: Live;
  query: URLSearchParams;
  addressOf: (change: Record<string, string>) => string;
}

interface LogProps {
  /** Where its pieces are. */
  path: string;
  task: string;
  /** The end of the file. */
  log: LogWindow;
  setLog: SetLog;
  /** Offset of a byte, whose line is marked; part of the address. */
  at: number | null;
  /** The address of another log, or of another place in it. */
  addressOf: (change: { file?: string; at: string }) => string;
  /** Shown if there is no log. */
  none?: string;
}
