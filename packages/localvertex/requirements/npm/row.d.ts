// Made by `python -m localvertex_tests.console.row_types` from localvertex/console/runs/row.py.

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
