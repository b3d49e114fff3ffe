"""The progress of a run as plain lines."""

from collections.abc import Callable
from pathlib import Path

from localvertex.runner.display import Display
from localvertex.store.task import State, Task


class Lines(Display):
    """Prints one line for each state that a step reaches, for logs and pipes."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def on_start(self, run_dir: Path, root: Task) -> None:
        """Print where the run's files are."""
        self._write(opening_line(run_dir, root))

    def on_change(self, task: Task) -> None:
        """Print a line for a step; for a dag only when it was not triggered or failed itself."""
        is_worth_a_line = task.is_step or task.state is State.NOT_TRIGGERED or (task.error and not task.children)
        if is_worth_a_line and task.path:
            self._write(f"{task.title}: {describe(task)}")

    def on_warning(self, text: str) -> None:
        """Print one line."""
        self._write(f"warning: {text}")

    def on_report(self, text: str) -> None:
        """Print one line."""
        self._write(text)


def opening_line(run_dir: Path, root: Task) -> str:
    """Return the first line about a run: its id and its folder, and whether it was started before."""
    return f"{'resuming ' if root.started_at else ''}run {run_dir.name} in {run_dir}"


def describe(task: Task) -> str:
    """Describe a task's state: seconds, and why it did not run. The summary has the error of a failed step."""
    if task.state is State.SKIPPED:
        return "SKIPPED, outputs taken from the cache"
    if task.state is State.GIVEN:
        return "GIVEN, not run"
    if task.is_restored:
        return f"{task.state} before, not run again"
    note = f" ({task.note})" if task.note else ""
    seconds = f" after {task.seconds:.1f} s" if task.state.is_final and task.started_at else ""
    return f"{task.state}{seconds}{note}"
