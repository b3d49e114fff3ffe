"""The subject of a proof: the custom jobs of a compiled pipeline, a CustomJob in a file, or a command."""

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localvertex import runs
from localvertex._base.compiled import parameters
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import reading
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import did_you_mean
from localvertex.errors import TaskFailed
from localvertex.executors.custom_job import JOB_FILE
from localvertex.jobs import CustomJob, Pool, read_job
from localvertex.jobs.job import Scheduling
from localvertex.runner.checks.given_outputs import named_tasks
from localvertex.runner.engine import open_file
from localvertex.runner.options import Options
from localvertex.store.task import State


def read(options: argparse.Namespace, run_options: Options) -> list[CustomJob]:
    """Return the jobs that the user's words name.

    Raises:
        UserError: They name nothing that can be proved.
    """
    path = Path(options.words[0])
    if len(options.words) == 1 and path.suffix in (".json", ".yaml", ".yml"):
        content = reading.read(path)
        fields = content if isinstance(content, dict) else {}
        if {"workerPoolSpecs", "worker_pool_specs"} & fields.keys():
            fields = {"display_name": path.stem, "job_spec": fields}
        if not {"jobSpec", "job_spec"} & fields.keys():
            return _of_pipeline(path, options, run_options)
        jobs = [_of_message(path.stem, fields, run_options)]
    else:
        jobs = [_of_command(options.words)]
    if options.step or options.parameter or options.parameter_file:
        raise UserError(f"{options.words[0]}: --step and parameters are only for compiled pipelines")
    return jobs


def _of_command(words: Sequence[str]) -> CustomJob:
    """Build the job of a command. It runs in a new folder, so arguments that are existing paths become absolute."""
    if not shutil.which(words[0]):
        raise UserError(f"{words[0]!r}: expected a program, or a .json or .yaml file of a pipeline or CustomJob")
    program = os.path.abspath(words[0]) if os.sep in words[0] else words[0]
    arguments = [os.path.abspath(each) if os.path.exists(each) else each for each in words[1:]]
    paths = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    pool = Pool(
        number=0,
        num_replicas=1,
        image_uri="",
        entry_point=(program, *arguments),
        arguments=(),
        env={"PYTHONPATH": paths},
        has_local_command=True,
    )
    name = next((Path(each).stem for each in words if each.endswith(".py")), Path(program).name)
    return CustomJob(display_name=name, pools=(pool,), scheduling=Scheduling())


def _of_pipeline(path: Path, options: argparse.Namespace, run_options: Options) -> list[CustomJob]:
    """Run a pipeline once in the work folder, so that its jobs have their inputs."""
    file = open_file(path, run_options)
    names = dict.fromkeys(name for each in named_tasks(file.pipeline) for name in (each.spec.name, each.path))
    if options.step not in ("", *names):
        known = did_you_mean(options.step, names) or f"; its steps are {', '.join(names)}"
        raise UserError(f"{path}: --step {options.step!r}: no step has this name{known}")
    values = parameters.read_given(file.pipeline.root.input_parameters, options.parameter, options.parameter_file)
    print("the pipeline runs once, so that its custom jobs have their inputs", flush=True)
    record = runs.run(file, parameters=values, options=run_options)
    if record["state"] != State.SUCCEEDED:
        raise UserError(f"{path}: the pipeline failed: {record['error']}")
    files = {
        each["path"]: run_options.work_dir / record["run_id"] / each["path"] / JOB_FILE for each in record["tasks"]
    }
    jobs = {name: json.loads(file.read_bytes()) for name, file in files.items() if file.is_file()}
    chosen = [name for name in jobs if not options.step or options.step in (name, Path(name).name)]
    if not chosen:
        what = f"--step {options.step!r} is no custom job" if options.step else "found no custom job"
        raise UserError(f"{path}: {what}; its custom jobs are {', '.join(jobs) or 'none'}")
    return [_of_message(Path(name).name, jobs[name], run_options) for name in chosen]


def _of_message(name: str, message: JsonObject, options: Options) -> CustomJob:
    try:
        job = read_job(
            message,
            region=options.region,
            warn=lambda text: print(f"warning: {text}"),
            choice=options.container_choice,
        )
    except TaskFailed as error:
        raise UserError(f"{name}: {error}") from None
    return replace(job, display_name=name)
