"""Checks whether this server can resume a run that has ended, whatever process started it, and prepares that."""

from localvertex import engine
from localvertex.errors import Refused
from localvertex.runner import repeated_options
from localvertex.runner.pipeline_run import PipelineRun
from localvertex.serve.api.errors import ApiError, Status, not_found
from localvertex.show.terminal import resume_command
from localvertex.state import record, runs
from localvertex.state.task import State
from vertex_gpu_training.userinput.errors import UserError


def prepare_retry(run_id: str, options: engine.Options) -> PipelineRun:
    """Take over a run as `localvertex run --resume` does; its finished steps are not run again.

    Args:
        run_id: The run, whose state is final.
        options: The options of this server.

    Raises:
        ApiError: The run cannot be resumed here; the message is one line.
    """
    run_dir = options.work_dir / run_id
    if not (run_dir / record.FILE).is_file():
        raise not_found(f"the run {run_id}")
    try:
        content = runs.find_readable(options.work_dir, run_id).content
        if not State(content["state"]).is_final:
            raise UserError(f"{run_id} is running; stop it first")
        if content["state"] == State.SUCCEEDED:
            raise UserError(f"{run_id} has succeeded; every step is finished, so there is nothing to retry")
        # Runs of an earlier version do not have this field.
        given = content.get("resume_options", [])
        options, missing = repeated_options.repeated(options, given)
        if missing:
            line = resume_command.command(content, ["localvertex"])
            raise UserError(
                f"{run_id} was started with {' '.join(missing)}, and this server was not; resume it in a terminal: {line}"
            )
        return engine.prepare_resume(run_id, options=options)
    except UserError as error:
        text = "; ".join(error.reasons) if isinstance(error, Refused) else str(error)
        raise ApiError(Status.FAILED_PRECONDITION, text) from None
    except (TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ApiError(Status.FAILED_PRECONDITION, f"{run_dir / record.FILE} is damaged: {reason}") from None
