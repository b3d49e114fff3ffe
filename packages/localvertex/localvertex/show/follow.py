"""`logs --follow`: the logs of a run as they grow, until the run or the task has ended."""

import time
from collections.abc import Callable
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.store import record
from localvertex.store.runs import find_readable, find_steps
from localvertex.store.steps import logs as step_logs
from localvertex.store.task import State

POLL_SECONDS = 0.25

Write = Callable[[bytes], object]
"""Prints a piece of a log."""


def follow(work_dir: Path, run: str, task: str | None, write: Write) -> None:
    """Print the logs of one task, or of all tasks, until nothing more can be added to them.

    Raises:
        UserError: There is no such run, or it has ended and has no such task.
    """
    # The name of a run may be "latest", which must not become another run.
    run_dir = find_readable(work_dir, run).run_dir
    offsets: dict[Path, int] = {}
    last: Path | None = None
    while True:
        # Before the logs are read: what a step writes at its end is not missed.
        is_running = record.is_running(run_dir)
        tasks: list[JsonObject] = []
        try:
            tasks = find_steps(find_readable(work_dir, run_dir.name), task)
        except UserError:
            # A task that is named may not be known before the run has come to it.
            if not is_running:
                raise
        for each in tasks:
            # The record names a log only after the next change of a task.
            folder = run_dir / each["path"]
            for path in step_logs.of_step(folder):
                data = _read(path, offsets)
                if data and last != path:
                    write(f"{step_logs.title(each['path'], folder, path)}\n".encode())
                    last = path
                write(data)
        if not is_running or (task and tasks and all(State(each["state"]).is_final for each in tasks)):
            return
        time.sleep(POLL_SECONDS)


def _read(path: Path, offsets: dict[Path, int]) -> bytes:
    """Return the part added to a log since the last call; all of it when the file was replaced."""
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) >= offsets.get(path, 0):
                file.seek(offsets.get(path, 0))
            else:
                file.seek(0)
            data = file.read()
            offsets[path] = file.tell()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UserError(f"cannot read the log {path}: {error.strerror}") from None
    return data
