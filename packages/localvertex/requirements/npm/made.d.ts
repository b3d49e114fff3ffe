// Made by `python -m localvertex_tests.console.row_types` from console/runs/row.py and show/view/shape.py.

/** A row of `GET /local/runs`. */
interface RunRow {
  id: string;
  name: string;
  state: string;
  pipeline: string;
  create_time: string | null;
  start_time: string | null;
  end_time: string | null;
  seconds: number | null;
  idle_seconds: number;
  error: string | null;
  note: string | null;
  resource: string | null;
  schedule: string | null;
  is_own: boolean;
  labels: Record<string, string>;
  metrics: Record<string, number>;
  parameters: Record<string, any>;
}

interface RunRecord {
  start_time?: string | null;
  end_time?: string | null;
  error?: string | null;
  failed_task?: string | null;
  gcs_root?: string | null;
  region?: string | null;
  sha256?: string | null;
  idle_seconds?: number;
  parameters?: Record<string, any>;
  outputs?: Values;
  input_artifacts?: Record<string, Artifact[]>;
  metrics: { task: string; artifact: string; name: string }[];
  models: { uri: string; resource_name?: string | null }[];
  resume_times?: string[];
  resume_options?: string[];
  warnings?: string[];
  unused_faults?: string[];
  outcome?: { kind: string; sentence: string; earlier_run: string } | null;
  tasks: EntryRecord[];
}

interface EntryRecord {
  path: string;
  title: string;
  display_name: string;
  kind: string;
  start_time: string | null;
  end_time: string | null;
  error?: string | null;
  note?: string | null;
  log?: string | null;
  state: string;
  seconds: number;
  attempts?: number | null;
  exit_code?: number | null;
  memory?: Memory | null;
  inputs: Values;
  outputs: Values;
  custom_job?: CustomJobStatus | null;
}

interface Values {
  parameters: Record<string, any>;
  artifacts: Record<string, Artifact[]>;
}

interface Artifact {
  type: { schemaTitle?: string };
  uri?: string;
  name?: string;
  metadata?: Record<string, any>;
}

interface CustomJobStatus {
  state: string;
  replicas: ReplicaStatus[];
  num_restarts?: number | null;
  num_preemptions?: number | null;
  stalled?: string;
  failed_replica?: string;
  events?: JobEvent[];
  goodput?: Goodput | null;
}

interface Goodput {
  total_seconds?: number;
  num_steps?: number;
  num_lost_steps?: number;
  num_failures?: number;
  num_trials?: number;
  seconds?: Record<string, number>;
  timeline?: Record<string, [string, number, number][]>;
  fraction?: number | null;
}

interface ReplicaStatus {
  name: string;
  is_running: boolean;
  num_starts: number;
  exit_code: number | null;
  step?: number | null;
  num_steps?: number | null;
  loss?: number | null;
  accuracy?: number | null;
  seconds_left?: number | null;
  memory?: Memory | null;
  spans?: Span[];
  event_log?: { path: string; offset: number } | null;
}

interface Span {
  start: number;
  end?: number | null;
  exit_code?: number | null;
}

interface Memory {
  peak_bytes: number;
  severity: string;
  text: string;
  machine_type?: string | null;
  machine_bytes?: number | null;
}

interface JobEvent {
  time: number;
  kind: string;
  text: string;
  replica: string;
  action: string;
  phase: string;
}
