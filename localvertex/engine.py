"""A run from the compiled file to its record: what the command line, the tests and a server share.

`run` does it all. Who has to stop a run, or to know its id before it starts, takes it in two steps:

    pending = prepare(file, parameters={...}, options=Options(...), display=listener)   # all checks, then the folder
    pending.run_id, pending.run_dir                                                     # known, nothing runs yet
    record = pending.execute()                                                          # blocks; any one thread
    pending.stop()                                                                      # from any other thread

The listener is a `display.Display`: it is told of each change of a task, and of the record at the end.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from compiled import platforms
from compiled.load import PipelineFile, load
from localvertex.errors import Refused
from localvertex.runner import container_images as images_option
from localvertex.runner.job_fields import earlier_job_fields, new_job_fields
from localvertex.runner.options import Options
from localvertex.runner.pipeline_run import PipelineRun
from localvertex.runner.refusals import refusals
from localvertex.show.display import Display, Silent
from localvertex.state import record, run_folder
from localvertex.state.run_ids import check_run_id, new_run_id
from localvertex.state.runs import find_readable
from localvertex.state.task import State
from localvertex.values import parameters as parameter_values
from userinput.errors import UserError

__all__ = ["Options", "PipelineRun", "open_pipeline", "prepare", "prepare_resume", "resume", "run"]


def open_pipeline(path: Path, images: Mapping[str, tuple[str, ...]] | None = None) -> PipelineFile:
    """Reads a compiled file and checks that all of it can run here, with these commands in place of images.

    Raises:
        UserError: the file is not a pipeline.
        Refused: it uses what does not run here; every such thing is named.
    """
    file = load(path)
    if images:
        file = replace(file, pipeline=images_option.apply(file.pipeline, images))
    reasons = refusals(file.pipeline)
    if reasons:
        raise Refused(reasons)
    return replace(file, pipeline=platforms.with_timeouts(file.pipeline))


def run(
    file: PipelineFile | Path | str,
    *,
    parameters: Mapping[str, Any] | None = None,
    options: Options | None = None,
    display: Display | None = None,
) -> dict[str, Any]:
    """Runs a pipeline and returns its record, the content of run.json.

    Raises:
        UserError: the input is wrong; nothing has run and nothing was written.
    """
    return prepare(file, parameters=parameters, options=options, display=display).execute()


def prepare(
    file: PipelineFile | Path | str,
    *,
    parameters: Mapping[str, Any] | None = None,
    options: Options | None = None,
    display: Display | None = None,
) -> PipelineRun:
    """Checks everything and makes the run's folder and first record; nothing runs before `execute`.

    Raises:
        UserError: the input is wrong; nothing was written.
    """
    options = options or Options()
    file = file if isinstance(file, PipelineFile) else open_pipeline(Path(file), options.images)
    declared = file.pipeline.root.input_parameters
    for name in parameters or {}:
        parameter_values.check_name(name, declared)
    values = parameter_values.complete(parameters or {}, declared)
    work_dir = options.work_dir.absolute()
    run_id = (
        new_run_id(file.pipeline.name, work_dir) if options.run_id is None else check_run_id(options.run_id, work_dir)
    )
    return PipelineRun(
        file, values, new_job_fields(run_id, work_dir, options), options=options, display=display or Silent()
    )


def resume(name: str, *, options: Options | None = None, display: Display | None = None) -> dict[str, Any]:
    """Goes on with a run that was killed, stopped or failed; returns its record.

    Raises:
        UserError: there is no such run, it is still running, or its record is damaged.
    """
    found = find_readable((options or Options()).work_dir, name)
    if found.content["state"] == State.SUCCEEDED:
        return found.content
    return prepare_resume(name, options=options, display=display).execute()


def prepare_resume(name: str, *, options: Options | None = None, display: Display | None = None) -> PipelineRun:
    """Takes an earlier run over: steps that have finished are not run again, those that had not start anew.

    Its pipeline, parameters, project and region are those that it was started with.

    Raises:
        UserError: see `resume`.
    """
    options = options or Options()
    run_dir = find_readable(options.work_dir, name).run_dir
    hold = run_folder.hold_when_free(run_dir, timeout_seconds=options.grace_seconds + run_folder.MARGIN_SECONDS)
    try:
        # Read again: until now somebody may have written to it.
        content = record.read(run_dir)
        if content["work_dir"] != str(options.work_dir.resolve()):
            raise UserError(
                f"{run_dir.name} was run in {content['work_dir']}, where its artifacts are; it cannot go on elsewhere"
            )
        file = open_pipeline(run_folder.pipeline_copy(run_dir), options.images)
        if file.sha256 != content.get("sha256"):
            raise UserError(f"{file.path} is not the file that {run_dir.name} was started with; run it anew")
        return PipelineRun(
            file,
            content["parameters"],
            earlier_job_fields(content),
            options=options,
            display=display or Silent(),
            earlier=content,
            hold=hold,
        )
    except (UserError, OSError, ValueError, KeyError) as error:
        hold.close()
        raise error if isinstance(error, UserError) else UserError(f"{run_dir / record.FILE}: {error}") from None
