"""Interface of a listener to the progress of a run."""

from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.store.task import Task


class Display:
    """Receives the progress of a run and shows nothing. Any thread may call `warned` and `reported`."""

    def on_start(self, run_dir: Path, root: Task) -> None:
        """Receive the start of the run; `root` will be filled with tasks."""

    def on_change(self, task: Task) -> None:
        """Receive a change of a task's state."""

    def on_warning(self, text: str) -> None:
        """Receive a difference from the service."""

    def on_report(self, text: str) -> None:
        """Receive an event within a step, for example the failure of a replica."""

    def on_end(self, record: JsonObject) -> None:
        """Receive the record at the end of the run."""
