"""The record of a run while it is written: each change goes to the journal, and run.json follows within seconds."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.credentials.secrets import Secrets
from localvertex.errors import RecordNotWritten
from localvertex.store import record
from localvertex.store.journal import PATTERN, Change, Journal
from localvertex.store.steps.finished import FinishedSteps
from localvertex.store.task import State, Task

_SNAPSHOT_SECONDS = 2.0
"""Time between two snapshots, at least."""

_SNAPSHOT_FACTOR = 20
"""A snapshot may take 1/20 of the time: the snapshot of a large run takes a second."""


@contextmanager
def translate_write_errors(run_dir: Path) -> Iterator[None]:
    """Raise RecordNotWritten in place of an OSError."""
    try:
        yield
    except OSError as error:
        raise RecordNotWritten(
            f"cannot write to {run_dir}: {error.strerror}; the run was stopped, and --resume {run_dir.name} resumes it"
        ) from None


class RunRecord:
    """Writes the record of one run. Used by the scheduler's thread only."""

    def __init__(
        self,
        root: Task,
        run_dir: Path,
        *,
        fields: Callable[[], JsonObject],
        secrets: Secrets,
        finished: FinishedSteps,
    ) -> None:
        self._root, self._run_dir, self._fields, self._secrets, self._finished = (
            root,
            run_dir,
            fields,
            secrets,
            finished,
        )
        self._written: JsonObject = {}
        """The fields of the run as readers know them."""
        self._is_changed = self._has_new_fields = self._has_failed = False
        self._next_snapshot = 0.0
        self._journal: Journal | None = None

    def begin(self, folder: Path) -> None:
        """Start a journal, and write the snapshot that names it.

        Args:
            folder: The folder of the run, or the one that will become it.

        Raises:
            OSError: They cannot be written.
        """
        for partial in folder.glob(".run.*.partial"):
            # Of a process that was killed while it wrote: this one holds the lock of the run.
            partial.unlink()
        self._journal = Journal(folder, self._finished.num_resumes)
        name = self._journal.position.file
        try:
            self._write_snapshot(folder)
        except OSError:
            self._journal.close()
            (folder / name).unlink()
            raise
        self._remove_journals(folder, kept=name)

    def write_change(self, task: Task) -> None:
        """Write a task that has changed, and those that it was opened into.

        Raises:
            RecordNotWritten: It cannot be written; the change must not be reported.
        """
        is_opened = task.state is State.RUNNING and not task.is_step
        tasks = [*([task] if task.path else []), *(task.children.values() if is_opened else [])]
        self._append([{"task": self._entry(each)} for each in tasks])
        is_first_failure = task.state is State.FAILED and not self._has_failed
        self._has_failed |= is_first_failure
        self._has_new_fields |= is_first_failure or not task.path
        self._is_changed = True

    def settled(self) -> float | None:
        """Write run.json if it is due; return the seconds after which it will be, None when it is up to date."""
        if self._root.state.is_final or not self._is_changed:
            # The end of the run is written in one piece, by `end`.
            return None
        if self._has_new_fields:
            self._append_fields()
            self._has_new_fields = False
        seconds = self._next_snapshot - time.monotonic()
        if seconds <= 0:
            with translate_write_errors(self._run_dir):
                self._write_snapshot(self._run_dir)
        return seconds if seconds > 0 else None

    def content(self) -> JsonObject:
        """Return the present record."""
        tasks = [self._entry(task) for task in self._root.walk()[1:]]
        fields: JsonObject = self._secrets.remove(self._fields())
        waiting = self._secrets.remove(self._finished.left)
        return fields | record.of_tasks(tasks) | {record.UNRESTORED: waiting, "update_time": record.now()}

    def end(self, content: JsonObject) -> None:
        """Write the complete run.json, which replaces the journal.

        Raises:
            RecordNotWritten: It cannot be written; the journal remains.
        """
        try:
            with translate_write_errors(self._run_dir):
                record.write(self._run_dir, content)
                self._remove_journals(self._run_dir)
        finally:
            if self._journal is not None:
                self._journal.close()

    def _write_snapshot(self, folder: Path) -> None:
        if self._journal is None:
            raise RuntimeError("the record has not begun")
        start = time.monotonic()
        content = self.content()
        record.write(folder, content, position=self._journal.position)
        self._written = content
        self._is_changed = self._has_new_fields = False
        end = time.monotonic()
        self._next_snapshot = end + max(_SNAPSHOT_SECONDS, _SNAPSHOT_FACTOR * (end - start))

    def _entry(self, task: Task) -> JsonObject:
        entry: JsonObject = self._secrets.remove(record.of_task(task, self._run_dir))
        return entry

    def _append_fields(self) -> None:
        """Write the fields of the run that have changed."""
        fields = self._secrets.remove(self._fields())
        changed = {name: value for name, value in fields.items() if self._written.get(name) != value}
        self._written |= changed
        self._append([{"run": changed}])

    def _append(self, changes: list[Change]) -> None:
        if self._journal is None:
            raise RuntimeError("the record has not begun")
        now = record.now()
        with translate_write_errors(self._run_dir):
            self._journal.append({"time": now, **each} for each in changes)

    def _remove_journals(self, folder: Path, *, kept: str = "") -> None:
        """Remove the journals whose changes are in the snapshot."""
        for path in folder.glob(PATTERN):
            if path.name != kept:
                path.unlink(missing_ok=True)
