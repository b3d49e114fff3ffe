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
