"""A run from the compiled file to its record.

    pending = prepare(file, parameters={...}, options=Options(...), write_page=write)   # all checks, then the folder
    pending.run_id, pending.run_dir                                                     # known, nothing runs yet
    record = pending.execute()                                                          # blocks; any one thread
    pending.stop()                                                                      # from any other thread

`prepare_resume` does the same for a run that was killed, stopped or failed.
A listener is a `display.Display`: it receives each change of a task, and the record at the end.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from localvertex._base.compiled.load import PipelineFile, load
from localvertex._base.compiled.parameters import complete, convert_all
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.containers.stand_ins import StandIns
from localvertex.errors import Refusal, Refused
from localvertex.processes.sinks import MASK
from localvertex.runner import input_artifacts
from localvertex.runner.checks import addresses, base_images, bigquery, container_images, given_outputs, jobs
from localvertex.runner.checks.given_outputs import example
from localvertex.runner.checks.proposal import proposed, text_of
from localvertex.runner.checks.refusals import refusals
from localvertex.runner.display import Display
from localvertex.runner.options import Options, earlier_job_fields, new_job_fields
from localvertex.runner.pipeline_inputs import buckets_of, file_values
from localvertex.runner.pipeline_run import PipelineRun, WritePage
from localvertex.store import record, run_folder
from localvertex.store.executor_files import artifact_parent
from localvertex.store.run_folder import check_run_id, new_run_id
from localvertex.store.runs import find_readable
from localvertex.store.task import Values
from localvertex.values.configuration import Configuration
from localvertex.values.repository import Repository

__all__ = [
    "Options",
    "PipelineRun",
    "check",
    "open_file",
    "prepare",
    "prepare_resume",
]


def open_file(
    file: PipelineFile | Path,
    options: Options | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    is_resumed: bool = False,
) -> PipelineFile:
    """Check that all of a compiled file can run locally, with the options' commands in place of images.

    A refusal also names what the values of the run lack: all parameters are known if `parameters` is not None.
    An image or a given step that the pipeline does not have is refused, except with `Options.has_other_images`; a run
    that is resumed may have been started with it.

    Raises:
        UserError: The file is not a pipeline.
        Refused: It uses features that cannot run locally; all of them are named.
    """
    options = options or Options()
    file = load(file) if isinstance(file, Path) else file
    job = file.pipeline.job
    try:
        convert_all(file.pipeline.root.input_parameters, job.parameters)
    except UserError as error:
        raise UserError(f"{file.path}: runtimeConfig: {error}") from None
    choice = options.container_choice
    if not options.has_other_images:
        stand_ins = StandIns() if is_resumed else choice.stand_ins
        container_images.check(file.pipeline, options.command_prefixes, stand_ins)
    allows_unknown = options.has_other_images or is_resumed
    pipeline = given_outputs.apply(
        file.pipeline, options.configuration, allows_unknown=allows_unknown, allows_gone=is_resumed
    )
    repository = Repository.of(pipeline, file.path, choice.stand_ins.sources)
    pipeline, reasons = container_images.apply(pipeline, choice, repository)
    file = replace(file, pipeline=pipeline)
    reasons += [*refusals(pipeline, choice, repository), *base_images.refusals(pipeline, choice, repository)]
    if reasons:
        # One proposal is better than two. Without a way on, the jobs may be such that they cannot be read.
        values, can_be_read = (
            _given(file, parameters or {}, options),
            all(isinstance(each, Refusal) for each in reasons),
        )
        reasons += [] if parameters is None else _missing_parameters(file, values)
        reasons += _value_refusals(file, {**file_values(file), **values}, options, has_jobs=can_be_read)
        raise _refused(file, reasons, options, values)
    return file


def prepare(
    file: PipelineFile | Path | str,
    *,
    parameters: Mapping[str, Any] | None = None,
    artifacts: input_artifacts.Given | None = None,
    options: Options,
    display: Display | None = None,
    write_page: WritePage,
) -> PipelineRun:
    """Check everything and create the run's folder and first record; nothing runs before `execute`.

    Args:
        file: The compiled file; in a PipelineJob, its runtimeConfig has values for what is not given here.
        parameters: Values of parameters by name.
        artifacts: Files and folders of this machine by the name of an input artifact of the pipeline.
        options: How it is run.
        display: Receives the changes of the run.
        write_page: Writes the page of the run at its end.

    Raises:
        UserError: The input is invalid; nothing was written.
    """
    file, inputs = check(file, parameters=parameters, artifacts=artifacts, options=options)
    work_dir = options.work_dir.absolute()
    run_id = (
        new_run_id(file.pipeline.name, work_dir) if options.run_id is None else check_run_id(options.run_id, work_dir)
    )
    job = new_job_fields(run_id, work_dir, options) | file.pipeline.job.placeholders
    return PipelineRun(
        file,
        inputs,
        job,
        options=options,
        display=display or Display(),
        write_page=write_page,
    )


def check(
    file: PipelineFile | Path | str,
    *,
    parameters: Mapping[str, Any] | None = None,
    artifacts: input_artifacts.Given | None = None,
    options: Options,
) -> tuple[PipelineFile, Values]:
    """Check everything that can be checked before a run is created; return the file and its inputs.

    Raises:
        UserError: The input is invalid.
    """
    file = file if isinstance(file, PipelineFile) else open_file(Path(file), options, parameters=parameters or {})
    declared, known = file.pipeline.root.input_parameters, _given(file, parameters or {}, options)
    values = {**file_values(file), **convert_all(declared, known)}
    if reasons := [*_missing_parameters(file, known), *_value_refusals(file, values, options)]:
        raise _refused(file, reasons, options, values)
    values = complete(declared, known)
    parent = artifact_parent(options.project, options.region)
    given = input_artifacts.resolve(file.pipeline, artifacts or {}, parent)
    return file, Values(parameters=values, artifacts=given)


def prepare_resume(
    name: str, *, options: Options, display: Display | None = None, write_page: WritePage
) -> PipelineRun:
    """Take over an earlier run: finished steps are not run again, unfinished ones start again.

    Its pipeline, parameters, project, region and configuration are those that it was started with.

    Raises:
        UserError: There is no such run, it is still running, or its record is damaged.
    """
    run_dir = find_readable(options.work_dir, name).run_dir
    hold = run_folder.hold_when_free(run_dir, timeout_seconds=options.grace_seconds + run_folder.MARGIN_SECONDS)
    try:
        # Read again: another process may have written to it before the lock was taken.
        content = record.read(run_dir)
        options = replace(options, configuration=Configuration.of_json(content.get("configuration", {})))
        file = _earlier_file(run_dir, content, options)
        if reasons := _value_refusals(file, content["parameters"], options, content):
            raise _refused(file, reasons, options, content["parameters"])
        return PipelineRun(
            file,
            Values(parameters=content["parameters"], artifacts=content.get("input_artifacts", {})),
            earlier_job_fields(content) | file.pipeline.job.placeholders,
            options=options,
            display=display or Display(),
            write_page=write_page,
            earlier=content,
            hold=hold,
        )
    except OSError as error:
        hold.close()
        raise run_folder.not_begun(run_dir, error) from None
    except (UserError, ValueError, LookupError, TypeError, AttributeError) as error:
        hold.close()
        raise error if isinstance(error, UserError) else UserError(f"{run_dir / record.FILE}: {error}") from None


def _given(file: PipelineFile, parameters: Mapping[str, Any], options: Options) -> JsonObject:
    """Return the values of a run: the caller's, those of the file, and those of localvertex.toml."""
    declared, configuration = file.pipeline.root.input_parameters, options.configuration
    known = configuration.tables_of(
        file.pipeline.name, "parameters", declared, ignores_unknown=options.has_other_images
    )
    return {**known, **file.pipeline.job.parameters, **parameters}


def _missing_parameters(file: PipelineFile, values: Mapping[str, Any]) -> list[str]:
    return [
        Refusal(f"parameter {name}: no value ({each.type})", table=("parameters",), content={name: example(each)})
        for name, each in file.pipeline.root.input_parameters.items()
        if each.is_required and values.get(name) is None
    ]


def _value_refusals(
    file: PipelineFile,
    values: Mapping[str, Any],
    options: Options,
    earlier: JsonObject | None = None,
    *,
    has_jobs: bool = True,
) -> list[str]:
    """Return what cannot run with these values: addresses that the run does not reach, and custom jobs."""
    reasons: list[str] = addresses.refusals(
        file.pipeline,
        values,
        buckets=buckets_of(options, earlier or {}),
        has_credentials=options.with_credentials,
        creates_buckets=options.configuration.buckets.get("create", False),
    )
    if has_jobs:
        region = str((earlier or {}).get("region", options.region))
        choice = options.container_choice
        repository = Repository.of(file.pipeline, file.path, choice.stand_ins.sources)
        reasons += jobs.refusals(file.pipeline, values, region=region, choice=choice, repository=repository)
    return reasons


def _refused(file: PipelineFile, reasons: list[str], options: Options, values: Mapping[str, Any]) -> Refused:
    """Return the refusal with one proposal, even for what may fail later."""
    callers = bigquery.calls(file.pipeline, values, has_credentials=options.with_credentials)
    reasons = [*dict.fromkeys([*reasons, *callers])]
    return Refused(reasons, text_of(proposed(file.pipeline, reasons, options.configuration), options.configuration))


def _earlier_file(run_dir: Path, content: JsonObject, options: Options) -> PipelineFile:
    """Open the compiled file that an earlier run was started with; refuse a run that was moved or changed."""
    if content["work_dir"] != str(options.work_dir.resolve()):
        raise UserError(f"{run_dir.name} was run in {content['work_dir']}, where its artifacts are; resume it there")
    for where, name in (("a parameter", "parameters"), ("its configuration", "configuration")):
        if MASK in json.dumps(content.get(name)):
            raise UserError(f"{run_dir.name} was started with a secret in {where}, which is not stored; run it again")
    file = open_file(run_folder.pipeline_copy(run_dir), options, is_resumed=True)
    if file.sha256 != content.get("copy_sha256", content.get("sha256")):
        raise UserError(f"{file.path} is not the file that {run_dir.name} was started with; start a new run")
    return file
