// Types of what the server answers. They are global: JSDoc of every file may name them.

/** A row of `GET /local/runs`. */
interface RunRow {
  id: string;
  /** The display name, or the id. */
  name: string;
  pipeline: string;
  state: string;
  create_time: string | null;
  start_time: string | null;
  end_time: string | null;
  seconds: number | null;
  error: string | null;
  /** The name of the PipelineJob, if the run was started through the API. */
  resource: string | null;
  /** The id of the schedule that started it. */
  schedule: string | null;
  /** Whether it has a run.html. */
  has_page: boolean;
  /** Whether this server started it, and can therefore stop it. */
  is_own: boolean;
}

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

type Column = import("../../localvertex/console/page/ui/table.js").Column;
