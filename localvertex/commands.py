"""The commands, on top of the engine and the records."""

import argparse
import shutil
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from localvertex import custom_jobs
from localvertex.checks import container_images
from localvertex.containers.options import ContainerOptions
from localvertex.custom_jobs.faults import faults
from localvertex.engine import Options, open_pipeline, resume, run
from localvertex.runner import input_artifacts
from localvertex.show import follow, summary
from localvertex.show.display import Display, Lines
from localvertex.show.terminal import resume_command, run_list
from localvertex.state import record, removal, run_folder, step_logs
from localvertex.state.runs import Found, find, find_all, find_readable, find_steps
from localvertex.state.task import State
from userinput import parameters
from userinput.errors import UserError

_MAX_TIME_FACTOR = 100_000.0
"""Beyond this factor, a minute is shorter than one check of the clock."""


def _run_command(options: argparse.Namespace) -> int:
    """Run `run`; return 0 when the pipeline succeeded, 1 when it failed, 128 + signal when it was stopped."""
    values = {
        "work_dir": options.work_dir,
        "run_id": options.run_id,
        "project": options.project,
        "region": options.region,
        "use_cache": not options.no_cache,
        "max_backoff_seconds": options.max_backoff,
        "grace_seconds": options.grace,
        "command_prefixes": container_images.from_options(options.image),
        "fail_fast": options.fail_fast,
        "gcs_root": options.gcs_root,
        "with_credentials": options.with_credentials,
        "allow_cloud_launchers": options.allow_cloud_launchers,
        "containers": _container_options(options),
        "custom_jobs": _custom_job_options(options),
    }
    if options.max_parallel is not None:
        values["max_parallel"] = options.max_parallel
    execute = _resume_run if options.resume else _start_run
    content = execute(options, Options(**values))
    summary.show(content)
    if content["state"] != State.SUCCEEDED:
        print(resume_command.sentence(content, options, options.parser))
    if content["stopped_by_signal"]:
        return 128 + int(content["stopped_by_signal"])
    return 0 if content["state"] == State.SUCCEEDED else 1


def _container_options(options: argparse.Namespace) -> ContainerOptions:
    """Read how container commands run."""
    return ContainerOptions(
        engine=options.engine, allow_network=options.allow_network, allow_host_commands=options.allow_host_commands
    )


def _custom_job_options(options: argparse.Namespace) -> custom_jobs.Options:
    """Read the faults and the restart rule of custom jobs."""
    if options.seed is not None and not options.faults:
        raise UserError(f"--seed {options.seed} needs --faults random")
    return custom_jobs.Options(
        restart_rule=custom_jobs.RestartRule(options.restart_rule),
        faults=tuple(faults.parse(text) for text in options.fault),
        random_faults_seed=(options.seed or 0) if options.faults else None,
    )


def _start_run(options: argparse.Namespace, run_options: Options) -> dict[str, Any]:
    """Run a file and return the record."""
    if options.file is None:
        raise UserError("nothing to run: give a compiled FILE, or --resume RUN")
    file = open_pipeline(
        options.file,
        run_options.command_prefixes,
        allow_cloud_launchers=run_options.allow_cloud_launchers,
        containers=run_options.container_choice,
    )
    declared = file.pipeline.root.input_parameters
    values = parameters.given(declared, options.parameter, options.parameter_file)
    artifacts = input_artifacts.from_options(options.input_artifact)
    return run(file, parameters=values, artifacts=artifacts, options=run_options, display=display())


def _resume_run(options: argparse.Namespace, run_options: Options) -> dict[str, Any]:
    """Resume an earlier run and return the record; what it computes was fixed when it was started."""
    fixed = {"FILE": options.file, "--parameter": options.parameter, "--parameter-file": options.parameter_file}
    fixed |= {"--input-artifact": options.input_artifact, "--run-id": options.run_id}
    if given := [name for name, value in fixed.items() if value]:
        raise UserError(f"--resume uses the values that the run was started with; leave out {' and '.join(given)}")
    found = find_readable(options.work_dir, options.resume)
    if found.content["state"] == State.SUCCEEDED:
        print(f"{found.run_dir.name} has already succeeded; nothing was run")
        return found.content | {"unused_faults": run_options.custom_jobs.new_ledger().unused}
    return resume(options.resume, options=run_options, display=display())


def display() -> Display:
    """Return the live view on a terminal, plain lines elsewhere."""
    if not sys.stdout.isatty():
        # One write for text and line end: several threads print, and an unbuffered print makes two writes.
        return Lines(lambda text: print(text + "\n", end="", flush=True))
    from localvertex.show.terminal.live import Live

    return Live()


def _list_command(options: argparse.Namespace) -> int:
    """Run `list`: print one line per run, newest first."""
    runs = find_all(options.work_dir)
    if not runs:
        print(f"no runs in {str(options.work_dir)!r}")
    else:
        run_list.show([each.content for each in runs if not each.problem])
        for each in runs:
            if each.problem:
                print(f"{each.run_dir.name}  UNREADABLE: {each.problem}")
    return 0


def _show_command(options: argparse.Namespace) -> int:
    """Run `show`: print the summary of one run."""
    summary.show(find_readable(options.work_dir, options.run).content)
    return 0


def _logs_command(options: argparse.Namespace) -> int:
    """Run `logs`: print the log of one task, or of all tasks that have one."""
    if options.follow:
        follow.follow(options.work_dir, options.run, options.task, lambda text: print(text, end="", flush=True))
        return 0
    found = find_readable(options.work_dir, options.run)
    tasks = find_steps(found, options.task)
    for task in tasks:
        folder = found.run_dir / task["path"]
        logs = step_logs.of_step(folder) or ([found.run_dir / task["log"]] if task["log"] else [])
        for log in logs:
            if len(tasks) > 1 or len(logs) > 1:
                print(step_logs.title(task["path"], folder, log))
            try:
                sys.stdout.write(log.read_text(errors="replace"))
            except OSError as error:
                raise UserError(f"cannot read the log {log}: {error.strerror}") from None
    return 0


def _clean_command(options: argparse.Namespace) -> int:
    """Run `clean`: remove runs, after a question, unless something still refers to them."""
    if not (options.yes or options.dry_run or sys.stdin.isatty()):
        raise UserError("clean asks for confirmation and found no terminal; add --yes to remove, or --dry-run to list")
    every = find_all(options.work_dir)
    named = {each.run_dir: each for each in (find(options.work_dir, name) for name in options.runs)}
    # A damaged record may belong to another program; only its name says that it is meant.
    wanted = list(named.values()) or [each for each in every if not each.problem]
    planned = removal.plan(options.work_dir, wanted, every)
    if named and planned.kept:
        run_dir, reason = next(iter(planned.kept.items()))
        raise UserError(f"{run_dir.name} cannot be removed: {reason}; nothing was removed")
    kept = planned.kept | {each.run_dir: "its record cannot be read" for each in every if each.problem and not named}
    for run_dir, reason in kept.items():
        print(f"keeping {run_dir}: {reason}")
    caches = _caches(options.work_dir, every) if options.cache else []
    return _remove_all([*planned.removed], caches, options)


def _caches(work_dir: Path, every: list[Found]) -> list[Path]:
    """Return the folder of caches and environments, unless a run or the endpoint may use it."""
    private = work_dir / record.PRIVATE
    if any(map(record.is_running, [work_dir / "api", *(each.run_dir for each in every)])):
        print(f"keeping {private}: it is in use")
        return []
    return [private] if private.is_dir() else []


def _remove_all(runs: list[Path], caches: list[Path], options: argparse.Namespace) -> int:
    if not runs and not caches:
        print("nothing to remove")
        return 0
    if options.dry_run or not options.yes:
        for path in [*runs, *caches]:
            print(f"would remove {path}")
    if options.dry_run or not (options.yes or _agrees("remove all of these? [y/N] ")):
        print("nothing was removed")
        return 0
    for path in runs:
        others = removal.remove(path)
        print(f"removed {path}" if not others else f"removed the run {path}, but not {', '.join(others)} in it")
    for path in caches:
        _remove_cache(path, options.work_dir / "api")
    return 0


def _remove_cache(path: Path, api: Path) -> None:
    """Remove the caches while no server can start."""
    try:
        with run_folder.lock(api) if api.is_dir() else nullcontext():
            shutil.rmtree(path)
    except BlockingIOError:
        print(f"keeping {path}: it is in use")
    else:
        print(f"removed {path}")


def _agrees(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _serve_command(options: argparse.Namespace) -> int:
    """Run `serve` until it is stopped."""
    try:
        # No other command needs the web framework.
        from localvertex.serve.server import serve
    except ImportError as error:
        raise UserError(f"serve needs {error.name}; run pip install 'vertex-gpu-training[serve]'") from None
    if not 0 < options.time_factor <= _MAX_TIME_FACTOR:
        raise UserError(f"--time-factor {options.time_factor}: expected more than 0 and at most {_MAX_TIME_FACTOR:g}")
    serve(
        port=options.port,
        grpc_port=options.grpc_port,
        time_factor=options.time_factor,
        needs_token=not options.no_token,
        options=Options(
            work_dir=options.work_dir,
            gcs_root=options.gcs_root,
            command_prefixes=container_images.from_options(options.image),
            has_other_images=True,
            containers=_container_options(options),
            custom_jobs=_custom_job_options(options),
        ),
    )
    return 0


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run_command,
    "list": _list_command,
    "show": _show_command,
    "logs": _logs_command,
    "clean": _clean_command,
    "serve": _serve_command,
}
