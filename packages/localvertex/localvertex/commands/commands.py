"""The commands; `run` is in run.py."""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module

from localvertex._base import extras
from localvertex._base.userinput.errors import UserError
from localvertex.show import follow
from localvertex.show.terminal import resume_command, run_list, summary
from localvertex.store import removal
from localvertex.store.runs import find, find_all, find_readable, find_steps
from localvertex.store.steps import logs as step_logs
from localvertex.store.task import State

_MAX_TIME_FACTOR = 100_000.0
"""Beyond this factor, a minute is shorter than one check of the clock."""


_LISTED = (
    *("run_id", "pipeline_name", "state", "create_time", "start_time", "end_time", "seconds", "error"),
    *("parameters", "metrics", "models"),
)
"""Fields of a record that `list --json` has."""


def _imported(module: str) -> Callable[[argparse.Namespace], int]:
    """Return a command whose module is imported only for it; few commands need the engine."""
    return lambda options: int(import_module(f"localvertex.{module}").execute(options))


def _list_command(options: argparse.Namespace) -> int:
    """Run `list`: print one line per run, newest first."""
    runs = find_all(options.work_dir)
    options.answer["runs"] = [
        {"path": str(each.run_dir), "problem": each.problem, **{name: each.content.get(name) for name in _LISTED}}
        for each in runs
    ]
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
    content = find_readable(options.work_dir, options.run).content
    summary.show(content)
    if content["state"] in (State.FAILED, State.CANCELLED):
        print(resume_command.sentence(content))
    return 0


def _logs_command(options: argparse.Namespace) -> int:
    """Run `logs`: print the log of one step, or of all steps that have one."""
    if options.follow:
        follow.follow(options.work_dir, options.run, options.task, _write_through)
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


def _write_through(data: bytes) -> None:
    """Write a piece of a log to standard output at once."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _clean_command(options: argparse.Namespace) -> int:
    """Run `clean`: remove runs, after a question, unless something still refers to them."""
    if not (options.yes or options.dry_run or sys.stdin.isatty()):
        raise UserError("clean asks for confirmation and found no terminal; add --yes to remove, or --dry-run to list")
    every = find_all(options.work_dir)
    named = {each.run_dir: each for each in (find(options.work_dir, name) for name in options.runs)}
    # A damaged record may belong to another program; only its name identifies it.
    wanted = list(named.values()) or [each for each in every if not each.problem]
    planned = removal.plan(options.work_dir, wanted, every)
    if named and planned.kept:
        run_dir, reason = next(iter(planned.kept.items()))
        raise UserError(f"{run_dir.name} cannot be removed: {reason}; nothing was removed")
    kept = planned.kept | {each.run_dir: "its record cannot be read" for each in every if each.problem and not named}
    for run_dir, reason in kept.items():
        print(f"keeping {run_dir}: {reason}")
    if not planned.removed:
        print("nothing to remove")
        return 0
    if options.dry_run or not options.yes:
        for path in planned.removed:
            print(f"would remove {path}")
    if options.dry_run or not (options.yes or _agrees("remove all of these? [y/N] ")):
        print("nothing was removed")
        return 0
    for path in planned.removed:
        others = removal.remove(path)
        print(f"removed {path}" if not others else f"removed the run {path}, but not {', '.join(others)} in it")
    return 0


def _agrees(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _console_command(options: argparse.Namespace) -> int:
    """Run `console`: open the console of the server that uses the work folder, or serve until stopped."""
    _check_serve_is_installed(options.command)
    from localvertex.console import opening

    if opening.use_running(options.work_dir, opens_browser=options.browser):
        return 0
    return _serve(options, partial(opening.open_in_browser, options.work_dir) if options.browser else lambda _: None)


def _serve_command(options: argparse.Namespace) -> int:
    """Run `serve` until it is stopped."""
    _check_serve_is_installed(options.command)
    return _serve(options, lambda _: None)


def _check_serve_is_installed(command: str) -> None:
    """Import the web framework, which no other command needs.

    Raises:
        UserError: A package is missing.
    """
    try:
        import localvertex.commands.server  # noqa: F401
    except ImportError as error:
        raise UserError(f"{command} needs {error.name}; {extras.install('serve')}") from None


def _serve(options: argparse.Namespace, when_started: Callable[[str], object]) -> int:
    """Serve until stopped."""
    from localvertex.commands import run
    from localvertex.commands.server import serve
    from localvertex.jobs.faults import faults
    from localvertex.runner.options import Options

    if not 0 < options.time_factor <= _MAX_TIME_FACTOR:
        raise UserError(f"--time-factor {options.time_factor}: expected more than 0 and at most {_MAX_TIME_FACTOR:g}")
    if options.max_runs < 1:
        raise UserError(f"--max-runs {options.max_runs}: expected at least 1")
    serve(
        port=options.port,
        time_factor=options.time_factor,
        max_runs=options.max_runs,
        when_started=when_started,
        options=Options(
            **run.shared_options(options), has_other_images=True, faults=tuple(map(faults.parse, options.fault))
        ),
    )
    return 0


def _prove_command(options: argparse.Namespace) -> int:
    """Run `prove`."""
    from localvertex.commands import run
    from localvertex.runner.options import Options

    try:
        from localvertex.prove import command
    except ImportError as error:
        raise UserError(f"prove needs {error.name}; {extras.install('prove')}") from None
    return command.execute(options, Options(**run.shared_options(options)))


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "init": _imported("init.init"),
    "run": _imported("commands.run"),
    "probe": _imported("probe.command"),
    "prove": _prove_command,
    "list": _list_command,
    "show": _show_command,
    "logs": _logs_command,
    "clean": _clean_command,
    "serve": _serve_command,
    "console": _console_command,
}
