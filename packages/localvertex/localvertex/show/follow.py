"""`logs --follow`: the logs of a run as they grow, until the run or the task has ended."""

import codecs
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localvertex.store import record
from localvertex.store.runs import Found, find_readable, find_steps
from localvertex.store.steps import logs as step_logs
from localvertex.store.task import State
from localvertex_base.userinput.errors import UserError

POLL_SECONDS = 0.25

Write = Callable[[str], object]
"""Prints a piece of text."""


@dataclass(kw_only=True)
class Log:
    """One log file, and how much of it has been printed."""

    path: Path
    title: str
    offset: int = 0
    decoder: codecs.IncrementalDecoder = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))

    def read_new(self) -> str:
        """Return what was added since the last call; from the beginning when the file was replaced."""
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self.offset:
                    self.offset = 0
                file.seek(self.offset)
                data = file.read()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise UserError(f"cannot read the log {self.path}: {error.strerror}") from None
        self.offset += len(data)
        return self.decoder.decode(data)


def follow(work_dir: Path, run: str, task: str | None, write: Write) -> None:
    """Print the logs of one task, or of all tasks, until nothing more can be added to them.

    Raises:
        UserError: There is no such run, or it has ended and has no such task.
    """
    # The name of a run may be "latest", which must not become another run.
    run_dir = find_readable(work_dir, run).run_dir
    logs: dict[Path, Log] = {}
    last: Path | None = None
    while True:
        # Before the logs are read: what a step writes at its end is not missed.
        is_running = record.is_running(run_dir)
        tasks = _tasks(find_readable(work_dir, run_dir.name), task, is_running)
        for log in _logs(tasks, run_dir, logs):
            text = log.read_new()
            if text and last != log.path:
                write(f"{log.title}\n")
                last = log.path
            if text:
                write(text)
        if not is_running or (task and tasks and all(State(each["state"]).is_final for each in tasks)):
            return
        time.sleep(POLL_SECONDS)


def _tasks(found: Found, name: str | None, is_running: bool) -> list[dict[str, Any]]:
    """Return the tasks to follow; a task that is named may not be known before the run has come to it."""
    try:
        return find_steps(found, name)
    except UserError:
        if is_running:
            return []
        raise


def _logs(tasks: list[dict[str, Any]], run_dir: Path, known: dict[Path, Log]) -> list[Log]:
    """Return the logs of the tasks and of their custom jobs' replicas, each with what is known of it."""
    found = []
    for task in tasks:
        # The record names a log only after the next change of a task.
        folder = run_dir / task["path"]
        for path in step_logs.of_step(folder):
            found.append(known.setdefault(path, Log(path=path, title=step_logs.title(task["path"], folder, path))))
    return found
