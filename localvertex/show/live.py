"""The live view on a terminal: steps with state, seconds and the last log line of those that run."""

import threading
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from localvertex.processes import logs
from localvertex.show.display import describe
from localvertex.show.summary import state_text
from localvertex.state.task import State, Task


class Live:
    """A table that rich redraws four times a second."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._root: Task | None = None
        self._lock = threading.Lock()
        self._live = RichLive(console=self._console, get_renderable=self._render, refresh_per_second=4, transient=True)

    def started(self, run_dir: Path, root: Task) -> None:
        """Starts drawing."""
        self._root = root
        self._console.print(f"run {run_dir.name} in {run_dir}", markup=False)
        self._live.start()

    def changed(self, task: Task) -> None:
        """A finished step stays on the screen above the table."""
        if task.state.is_final and task.is_step and task.path:
            with self._lock:
                self._console.print(f"{task.title}: {describe(task)}", markup=False)

    def warned(self, text: str) -> None:
        """Above the table, too."""
        with self._lock:
            self._console.print(Text(f"warning: {text}", style="yellow"))

    def told(self, text: str) -> None:
        """Above the table, too."""
        with self._lock:
            self._console.print(text, markup=False)

    def ended(self, record: dict[str, Any]) -> None:
        """Leaves the screen to the summary."""
        self._live.stop()

    def _render(self) -> RenderableType:
        table = Table(box=None, pad_edge=False, show_header=False)
        for _ in range(3):
            table.add_column(no_wrap=True, overflow="ellipsis")
        tasks = self._root.walk()[1:] if self._root else []
        for task in [each for each in tasks if each.is_step and not each.state.is_final]:
            table.add_row(task.title, state_text(task.state), f"{task.seconds:.0f} s" if task.started_at else "")
            line = last_line(task)
            if line:
                table.add_row(Text(f"  {line}", style="dim"))
            for replica in (task.custom_job or {}).get("replicas", []) if task.state is State.RUNNING else []:
                table.add_row(f"  {replica['name']}", replica_state(replica), replica_words(task, replica["name"]))
        return table


def replica_state(replica: dict[str, Any]) -> str:
    """A replica of a custom job in words: how far it is, and how often it was started."""
    if not replica["is_running"]:
        return f"exit code {replica['exit_code']}" if replica["exit_code"] is not None else "not started"
    step = f"step {replica['step']} of {replica['num_steps']}" if replica["num_steps"] else "running"
    return f"{step}, start {replica['num_starts']}" if replica["num_starts"] > 1 else step


def replica_words(task: Task, name: str) -> Text:
    """The last line of a replica's log."""
    return Text(logs.last_words(task.folder / f"{name}.log"), style="dim")


def last_line(task: Task) -> str:
    """The last line that a running task wrote, or what it waits for."""
    if task.state is not State.RUNNING or task.log is None:
        return task.note
    return logs.last_words(task.log)
