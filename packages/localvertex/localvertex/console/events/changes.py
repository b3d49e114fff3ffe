"""Changes for one tab: each class returns the events since its last call."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.store import UNUSABLE
from localvertex.console.events.stream import LAST, Event
from localvertex.console.runs.folders import step_folder
from localvertex.console.runs.record import RecordSnapshot, WatchedRuns
from localvertex.show.view import logs
from localvertex.store.executor_files import LOG


class RunChanges:
    """Changes of a run's record: `run`, `problem` when it cannot be read, `end` when it was deleted."""

    def __init__(self, records: WatchedRuns, run_dir: Path) -> None:
        self._records, self._run_dir = records, run_dir
        self._watched = records.watch(run_dir)
        self._seen: RecordSnapshot | None = None
        self._tasks: dict[str, JsonObject] = {}
        self._is_first = True

    def __call__(self) -> Iterator[Event]:
        """Return the changed entries; the first event, even after a problem, has all."""
        reading = self._watched.read()
        if reading is self._seen:
            return
        self._seen = reading
        try:
            found = self._run(reading)
        except (OSError, *UNUSABLE) as error:
            found = "problem", {"text": f"the record of {self._run_dir.name} cannot be used: {error}"}
        self._is_first = found[0] != "run"
        yield found
        if reading.is_removed:
            yield LAST, {"text": reading.problem}

    def _run(self, reading: RecordSnapshot) -> Event:
        if reading.problem:
            return "problem", {"text": reading.problem}
        tasks = {each["path"]: each for each in reading.content["tasks"]}
        # A resumed run begins again with fewer tasks.
        is_first = self._is_first or not self._tasks.keys() <= tasks.keys()
        known = {} if is_first else self._tasks
        changed = [each for path, each in tasks.items() if known.get(path) != each]
        self._tasks = tasks
        fields = self._records.fields(self._run_dir, reading.content)
        return "run", {"run": fields, "tasks": changed, "is_first": is_first}


class LogChanges:
    """Additions to a step's log: `log`; starts at the log's tail, and restarts when the log is replaced."""

    def __init__(self, run_dir: Path, task: str, name: str) -> None:
        self._run_dir, self._task, self._name = run_dir, task, name
        self._files: list[str] = []
        self._end: int | None = None
        self._inode = 0

    def __call__(self) -> Iterator[Event]:
        """Return the next piece, if there is one."""
        folder = step_folder(self._run_dir, self._task)
        files = logs.files(self._run_dir, self._task)
        name = self._name or next(iter(files), LOG)
        found = self._next(folder / name) if name in files else None
        if found is None and files == self._files:
            return
        self._files = files
        text = asdict(found) if found else {"text": ""}
        yield "log", {"task": self._task, "file": name, "files": files, **text}

    def _next(self, path: Path) -> logs.Piece | None:
        """Return the new part of the log; its end if the part is too long, or if the log was replaced."""
        found = logs.piece(path, offset=self._end)
        if found is not None and self._end is not None:
            is_replaced = found.inode != self._inode or found.size < self._end
            if is_replaced or found.size - self._end > logs.MOST_BYTES:
                found = logs.piece(path)
        if found is None or (found.inode, found.end) == (self._inode, self._end):
            return None
        self._end, self._inode = found.end, found.inode
        return found
