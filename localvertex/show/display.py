"""The progress of a run: nothing, plain lines, or a live table on a terminal."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from localvertex.processes import logs
from localvertex.show.summary import state_text
from localvertex.state.task import State, Task


class Display:
    """Receives the progress of a run and shows nothing. Any thread may call `warned` and `reported`."""

    def started(self, run_dir: Path, root: Task) -> None:
        """Receive the start of the run; `root` will be filled with tasks."""

    def changed(self, task: Task) -> None:
        """Receive a change of a task's state."""

    def warned(self, text: str) -> None:
        """Receive a difference from the service."""

    def reported(self, text: str) -> None:
        """Receive an event within a step, for example the failure of a replica."""

    def ended(self, record: dict[str, Any]) -> None:
        """Receive the record at the end of the run."""


class Lines(Display):
    """Prints one line for each state that a step reaches, for logs and pipes."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def started(self, run_dir: Path, root: Task) -> None:
        """Print where the run's files are."""
        self._write(f"run {run_dir.name} in {run_dir}")

    def changed(self, task: Task) -> None:
        """Print a line for a step; for a dag only when it was not triggered or failed itself."""
        is_worth_a_line = task.is_step or task.state is State.NOT_TRIGGERED or (task.error and not task.children)
        if is_worth_a_line and task.path:
            self._write(f"{task.title}: {_describe(task)}")

    def warned(self, text: str) -> None:
        """Print one line."""
        self._write(f"warning: {text}")

    def reported(self, text: str) -> None:
        """Print one line."""
        self._write(text)


class Live(Display):
    """A table of the running steps that rich redraws four times per second."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._root: Task | None = None
        self._lock = threading.Lock()
        self._live = RichLive(console=self._console, get_renderable=self._render, refresh_per_second=4, transient=True)

    def started(self, run_dir: Path, root: Task) -> None:
        """Start drawing."""
        self._root = root
        self._console.print(f"run {run_dir.name} in {run_dir}", markup=False)
        self._live.start()

    def changed(self, task: Task) -> None:
        """Print a finished step above the table, where it stays on the screen."""
        if task.state.is_final and task.is_step and task.path:
            with self._lock:
                self._console.print(f"{task.title}: {_describe(task)}", markup=False)

    def warned(self, text: str) -> None:
        """Print it above the table."""
        with self._lock:
            self._console.print(Text(f"warning: {text}", style="yellow"))

    def reported(self, text: str) -> None:
        """Print it above the table."""
        with self._lock:
            self._console.print(text, markup=False)

    def ended(self, record: dict[str, Any]) -> None:
        """Stop drawing; the summary follows."""
        self._live.stop()

    def _render(self) -> RenderableType:
        table = Table(box=None, pad_edge=False, show_header=False)
        for _ in range(3):
            table.add_column(no_wrap=True, overflow="ellipsis")
        tasks = self._root.walk()[1:] if self._root else []
        for task in [each for each in tasks if each.is_step and not each.state.is_final]:
            table.add_row(task.title, state_text(task.state), f"{task.seconds:.0f} s" if task.started_at else "")
            line = _last_line(task)
            if line:
                table.add_row(Text(f"  {line}", style="dim"))
            for replica in (task.custom_job or {}).get("replicas", []) if task.state is State.RUNNING else []:
                table.add_row(f"  {replica['name']}", replica_state(replica), _replica_line(task, replica["name"]))
        return table


def _describe(task: Task) -> str:
    """Describe a task's state: seconds, reason, retry."""
    if task.state is State.SKIPPED:
        return "SKIPPED, outputs taken from the cache"
    reason = f": {task.error}" if task.error and task.state is State.FAILED else f" ({task.note})" if task.note else ""
    seconds = f" after {task.seconds:.1f} s" if task.state.is_final and task.started_at else ""
    return f"{task.state}{seconds}{reason}"


def replica_state(replica: dict[str, Any]) -> str:
    """Describe a replica of a custom job: its step, and how often it was started."""
    if not replica["is_running"]:
        return f"exit code {replica['exit_code']}" if replica["exit_code"] is not None else "not started"
    step = f"step {replica['step']} of {replica['num_steps']}" if replica["num_steps"] else "running"
    return f"{step}, start {replica['num_starts']}" if replica["num_starts"] > 1 else step


def _replica_line(task: Task, name: str) -> Text:
    """Return the last line of a replica's log."""
    return Text(logs.last_line(task.folder / f"{name}.log"), style="dim")


def _last_line(task: Task) -> str:
    """Return the last line that a running task wrote, or what a pending one is waiting for."""
    if task.state is not State.RUNNING or task.log is None:
        return task.note
    return logs.last_line(task.log)
