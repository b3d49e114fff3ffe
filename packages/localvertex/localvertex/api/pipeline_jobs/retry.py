"""Check that a run can be retried: it did not succeed, and this server has the options it was run with."""

from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.api.rest.errors import ApiError, Status, not_found
from localvertex.runner import engine, repeated_options
from localvertex.runner.pipeline_run import PipelineRun
from localvertex.show import report
from localvertex.show.terminal import resume_command
from localvertex.store import record, run_folder, runs
from localvertex.store.task import State


def content_to_retry(work_dir: Path, run_id: str) -> JsonObject:
    """Return the record of a run that can be retried.

    Raises:
        ApiError: There is no such run, its record is damaged, or it is running or has succeeded.
    """
    if run_id in run_folder.RESERVED or not (work_dir / run_id / record.FILE).is_file():
        raise not_found(f"the run {run_id}")
    try:
        content = runs.find_readable(work_dir, run_id).content
    except UserError as error:
        raise _refuse(str(error)) from None
    if not State(content["state"]).is_final:
        raise _refuse(f"{run_id} is running; stop it first")
    if content["state"] == State.SUCCEEDED:
        raise _refuse(f"{run_id} has succeeded: all its steps are finished; to run it again, create a run")
    return content


def prepare_retry(content: JsonObject, options: engine.Options) -> PipelineRun:
    """Take over a run as `localvertex run --resume` does; its finished steps are not run again.

    Args:
        content: The record of the run.
        options: The options of this server.

    Raises:
        ApiError: The run cannot be resumed here; the message is one line.
        OSError: The record of the resume cannot be written.
    """
    run_id = content["run_id"]
    try:
        options, missing = repeated_options.merge_options(options, content["resume_options"])
        if missing:
            line = resume_command.command(content, ["localvertex"])
            text = (
                f"{run_id} was started with {' '.join(missing)}, this server was not; resume it in a terminal: {line}"
            )
            raise _refuse(text)
        return engine.prepare_resume(run_id, options=options, write_page=report.write)
    except run_folder.NotBegun as error:
        raise error.reason from None
    except UserError as error:
        raise _refuse(str(error)) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise _refuse(f"the record of {run_id} is damaged: {type(error).__name__}: {error}") from None


def _refuse(text: str) -> ApiError:
    return ApiError(Status.FAILED_PRECONDITION, " ".join(text.split()))
