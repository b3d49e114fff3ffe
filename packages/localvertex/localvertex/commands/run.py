"""The command `run`: a run, or a resumed one, as its command line describes it."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from localvertex import jobs, runs
from localvertex._base.compiled import parameters
from localvertex._base.compiled.load import load
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.api.steps.reach import with_api
from localvertex.containers.options import ContainerOptions
from localvertex.containers.stand_ins import StandIns
from localvertex.jobs.faults import faults
from localvertex.runner import input_artifacts
from localvertex.runner.checks import container_images
from localvertex.runner.checks.proposal import after, text_of
from localvertex.runner.display import Display
from localvertex.runner.engine import open_file
from localvertex.runner.options import Options
from localvertex.show.terminal import resume_command, summary
from localvertex.show.terminal.lines import Lines
from localvertex.store.run_folder import pipeline_copy
from localvertex.store.runs import find_readable
from localvertex.store.task import State
from localvertex.values import configuration
from localvertex.values.configuration import Configuration
from localvertex.values.repository import Repository


def execute(options: argparse.Namespace) -> int:
    """Run; return 0 when the pipeline succeeded, 1 when it failed, 128 + signal when it was stopped."""
    start = _resume_run if options.resume else _start_run
    content = start(options, with_api(run_options(options)))
    options.answer["run"] = content
    summary.show(content)
    if content["state"] != State.SUCCEEDED:
        if content["state"] == State.FAILED and (proposal := _stand_ins(content)):
            options.answer["proposal"] = proposal
            print(f"to run without what failed, add to localvertex.toml and run the file again:\n\n{proposal}\n")
        options.answer["resume"] = resume_command.sentence(content)
        print(options.answer["resume"])
    if content["stopped_by_signal"]:
        return 128 + int(content["stopped_by_signal"])
    return 0 if content["state"] == State.SUCCEEDED else 1


def _stand_ins(content: JsonObject) -> str:
    """Return the tables of localvertex.toml without which steps have failed; empty for none."""
    steps = [each for each in content["tasks"] if each["kind"] == "step"]
    run_dir = Path(content["work_dir"]) / content["run_id"]
    file = load(pipeline_copy(run_dir))
    found = Configuration.of_json(content.get("configuration", {}))
    stand_ins = StandIns(found)
    repository = Repository.of(file.pipeline, content["file"], stand_ins.sources)
    tables = after(
        file.pipeline,
        steps,
        repository,
        stand_ins,
        found,
        values=content["parameters"],
        run_dir=run_dir,
        has_buckets=bool(content["gcs_root"]),
    )
    return text_of(tables, found)


def run_options(options: argparse.Namespace) -> Options:
    """Read the options of a run."""
    values = shared_options(options) | {
        "run_id": options.run_id,
        "project": options.project,
        "region": options.region,
        "use_cache": not options.no_cache,
        "max_backoff_seconds": options.max_backoff,
        "grace_seconds": options.grace,
        "fail_fast": options.fail_fast,
        "with_credentials": options.with_credentials,
        "faults": tuple(map(faults.parse, options.fault)),
    }
    if options.max_parallel is not None:
        values["max_parallel"] = options.max_parallel
    return Options(**values)


def shared_options(options: argparse.Namespace) -> JsonObject:
    """Read the options that all commands have which run something; print which localvertex.toml is used."""
    # A resumed run has the configuration that it was started with; `serve` has no such option.
    is_new = not vars(options).get("resume")
    found = configuration.find(options.config) if is_new else Configuration()
    if is_new and options.create_buckets:
        found = replace(found, buckets={**found.buckets, "create": True})
    if found.file is not None:
        print(f"using {found.file}", flush=True)
    return {
        "work_dir": options.work_dir,
        "gcs_root": options.gcs_root,
        "command_prefixes": container_images.from_options(options.image),
        "configuration": found,
        "containers": ContainerOptions(
            engine=options.engine, allow_network=options.allow_network, allow_host_commands=options.allow_host_commands
        ),
    }


def _start_run(options: argparse.Namespace, run_options: Options) -> JsonObject:
    """Run a file and return the record."""
    if options.file is None:
        raise UserError("nothing to run: give a compiled FILE, or --resume RUN")
    file = load(options.file)
    values = parameters.read_given(file.pipeline.root.input_parameters, options.parameter, options.parameter_file)
    file = open_file(file, run_options, parameters=values)
    artifacts = input_artifacts.from_options(options.input_artifact)
    return runs.run(file, parameters=values, artifacts=artifacts, options=run_options, display=_display())


def _resume_run(options: argparse.Namespace, run_options: Options) -> JsonObject:
    """Resume an earlier run and return the record; what it computes was fixed when it was started."""
    fixed = {"FILE": options.file, "--parameter": options.parameter, "--parameter-file": options.parameter_file}
    fixed |= {"--input-artifact": options.input_artifact, "--run-id": options.run_id, "--config": options.config}
    fixed |= {"--create-buckets": options.create_buckets}
    if given := [name for name, value in fixed.items() if value]:
        raise UserError(f"--resume uses the values that the run was started with; leave out {' and '.join(given)}")
    found = find_readable(options.work_dir, options.resume)
    if found.content["state"] == State.SUCCEEDED:
        print(f"{found.run_dir.name} has already succeeded; nothing was run")
        return found.content | {"unused_faults": jobs.FaultLedger(run_options.faults).unused}
    return runs.resume(options.resume, options=run_options, display=_display())


def _display() -> Display:
    """Return the live view on a terminal, plain lines elsewhere."""
    if not sys.stdout.isatty():
        # One write for text and line end: several threads print, and an unbuffered print makes two writes.
        return Lines(lambda text: print(text + "\n", end="", flush=True))
    from localvertex.show.terminal.live import Live

    return Live()
