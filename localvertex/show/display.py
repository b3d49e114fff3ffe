"""What a run shows while it goes on: nothing, plain lines, or (live.py) a table that is kept up to date."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from localvertex.state.task import State, Task


class Display(Protocol):
    """Listens to a run. `warned` and `told` may be called from several threads, the rest from the scheduler's."""

    def started(self, run_dir: Path, root: Task) -> None:
        """The run begins; `root` will be filled with tasks."""
        ...

    def changed(self, task: Task) -> None:
        """A task is in another state."""
        ...

    def warned(self, text: str) -> None:
        """Something differs from the service."""
        ...

    def told(self, text: str) -> None:
        """Something happened within a step: a replica of a custom job failed, say."""
        ...

    def ended(self, record: dict[str, Any]) -> None:
        """The run is over."""
        ...


class Silent:
    """Shows nothing."""

    def started(self, run_dir: Path, root: Task) -> None:
        """Nothing."""

    def changed(self, task: Task) -> None:
        """Nothing."""

    def warned(self, text: str) -> None:
        """Nothing."""

    def told(self, text: str) -> None:
        """Nothing."""

    def ended(self, record: dict[str, Any]) -> None:
        """Nothing."""


class Lines:
    """One line for each state that a step reaches, for logs and pipes."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def started(self, run_dir: Path, root: Task) -> None:
        """Says where the run's files are."""
        self._write(f"run {run_dir.name} in {run_dir}")

    def changed(self, task: Task) -> None:
        """One line for a step; dags only when they are not triggered or failed by themselves."""
        is_worth_a_line = task.is_step or task.state is State.NOT_TRIGGERED or (task.error and not task.children)
        if is_worth_a_line and task.path:
            self._write(f"{task.title}: {describe(task)}")

    def warned(self, text: str) -> None:
        """One line."""
        self._write(f"warning: {text}")

    def told(self, text: str) -> None:
        """One line."""
        self._write(text)

    def ended(self, record: dict[str, Any]) -> None:
        """Nothing; the summary follows."""


def describe(task: Task) -> str:
    """A task's state in words: seconds, reason, retry."""
    if task.state is State.SKIPPED:
        return "SKIPPED, its outputs come from the cache"
    reason = f": {task.error}" if task.error and task.state is State.FAILED else f" ({task.note})" if task.note else ""
    seconds = f" after {task.seconds:.1f} s" if task.state.is_final and task.started_at else ""
    return f"{task.state}{seconds}{reason}"
