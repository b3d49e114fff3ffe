"""What the commands do, on top of the engine and the records."""

import argparse
import shutil
import sys
from collections.abc import Callable
from typing import Any

from localvertex import custom_jobs
from localvertex.custom_jobs.faults import faults
from localvertex.engine import Options, open_pipeline, resume, run
from localvertex.runner import container_images as images
from localvertex.show import summary
from localvertex.show.display import Display, Lines
from localvertex.state import record
from localvertex.state.runs import Found, find, find_all, find_readable, find_task
from localvertex.state.task import State
from localvertex.values import parameters
from userinput.errors import UserError

MAX_TIME_FACTOR = 100_000.0
"""Above that a minute is shorter than the time it takes to look at the clock."""


def run_command(options: argparse.Namespace) -> int:
    """`run`: 0 when the pipeline succeeded, 1 when it failed, 128 + signal when it was stopped."""
    how = {
        "work_dir": options.work_dir,
        "run_id": options.run_id,
        "project": options.project,
        "region": options.region,
        "use_cache": not options.no_cache,
        "max_backoff_seconds": options.max_backoff,
        "grace_seconds": options.grace,
        "images": images.from_options(options.image),
        "fail_fast": options.fail_fast,
        "custom_jobs": custom_job_options(options),
    }
    if options.max_parallel is not None:
        how["max_parallel"] = options.max_parallel
    content = resumed(options, Options(**how)) if options.resume else started(options, Options(**how))
    summary.show(content)
    if content["stopped_by_signal"]:
        return 128 + int(content["stopped_by_signal"])
    return 0 if content["state"] == State.SUCCEEDED else 1


def custom_job_options(options: argparse.Namespace) -> custom_jobs.Options:
    """What is to go wrong in custom jobs, and what restarts them."""
    if options.seed is not None and not options.faults:
        raise UserError(f"--seed {options.seed} is for --faults random, which is not given")
    return custom_jobs.Options(
        restart_rule=custom_jobs.RestartRule(options.restart_rule),
        faults=tuple(faults.parse(text) for text in options.fault),
        random_faults_seed=(options.seed or 0) if options.faults else None,
    )


def started(options: argparse.Namespace, how: Options) -> dict[str, Any]:
    """A new run of a file."""
    if options.file is None:
        raise UserError("run what? name a compiled FILE, or an earlier run with --resume RUN")
    file = open_pipeline(options.file, how.images)
    declared = file.pipeline.root.input_parameters
    values = parameters.from_file(options.parameter_file, declared) if options.parameter_file else {}
    values |= parameters.from_options(options.parameter, declared)
    return run(file, parameters=values, options=how, display=display())


def resumed(options: argparse.Namespace, how: Options) -> dict[str, Any]:
    """An earlier run that goes on; what it computes was settled when it was started."""
    settled = {"FILE": options.file, "--parameter": options.parameter, "--parameter-file": options.parameter_file}
    settled |= {"--run-id": options.run_id}
    if given := [name for name, value in settled.items() if value]:
        raise UserError(f"--resume goes on with what the run was started with; leave out {' and '.join(given)}")
    return resume(options.resume, options=how, display=display())


def display() -> Display:
    """A live table on a terminal, lines elsewhere."""
    if not sys.stdout.isatty():
        # One write for text and line end: several threads speak, and an unbuffered print makes two writes.
        return Lines(lambda text: print(text + "\n", end="", flush=True))
    from localvertex.show.live import Live

    return Live()


def list_command(options: argparse.Namespace) -> int:
    """`list`: one line a run, newest first."""
    runs = find_all(options.work_dir)
    if not runs:
        print(f"no runs in {options.work_dir}")
    else:
        summary.table_of_runs([each.content for each in runs if not each.problem])
        for each in runs:
            if each.problem:
                print(f"{each.run_dir.name}  UNREADABLE: {each.problem}")
    return 0


def show_command(options: argparse.Namespace) -> int:
    """`show`: the summary of one run."""
    summary.show(find_readable(options.work_dir, options.run).content)
    return 0


def logs_command(options: argparse.Namespace) -> int:
    """`logs`: the log of one task, or of all tasks that have one."""
    found = find_readable(options.work_dir, options.run)
    tasks = [find_task(found, options.task)] if options.task else [t for t in found.content["tasks"] if t["log"]]
    for task in tasks:
        logs = sorted((found.run_dir / task["log"]).parent.glob("*.log")) if task["log"] else []
        for log in [found.run_dir / task["log"], *logs] if task["log"] else []:
            if len(tasks) > 1 or logs:
                print(f"==> {task['path']} ({log.name}) <==")
            try:
                sys.stdout.write(log.read_text(errors="replace"))
            except OSError as error:
                raise UserError(f"the log {log} cannot be read: {error.strerror}") from None
    return 0


def clean_command(options: argparse.Namespace) -> int:
    """`clean`: removes runs that are not running."""
    runs = [find(options.work_dir, each) for each in options.runs] or find_all(options.work_dir)
    busy = [each for each in runs if record.is_running(each.run_dir)]
    if options.runs and busy:
        raise UserError(f"{busy[0].run_dir.name} is running; stop it first")
    for each in runs:
        if each not in busy:
            remove(each)
    private = options.work_dir / ".localvertex"
    if options.cache and private.is_dir() and not busy:
        shutil.rmtree(private)
        print(f"removed {private}")
    return 0


def serve_command(options: argparse.Namespace) -> int:
    """`serve`: until it is stopped."""
    try:
        # The web framework is needed by no other command.
        from localvertex.serve.server import serve
    except ImportError as error:
        raise UserError(f"serve needs {error.name}: pip install 'vertex-gpu-training[serve]'") from None
    if not 0 < options.time_factor <= MAX_TIME_FACTOR:
        raise UserError(f"--time-factor {options.time_factor}: more than 0, at most {MAX_TIME_FACTOR}, expected")
    serve(options.work_dir, port=options.port, time_factor=options.time_factor)
    return 0


def remove(found: Found) -> None:
    """Removes the folder of a run, its record first: half a folder is no run."""
    (found.run_dir / record.FILE).unlink()
    shutil.rmtree(found.run_dir)
    print(f"removed {found.run_dir}")


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": run_command,
    "list": list_command,
    "show": show_command,
    "logs": logs_command,
    "clean": clean_command,
    "serve": serve_command,
}
