"""The record of a run as the console shows it, read again only when its files have changed."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from localvertex._base.compiled import load
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.api.pipeline_jobs.view import state_and_error, was_started_here
from localvertex.api.rest.errors import ApiError, Status
from localvertex.api.rest.index import signature
from localvertex.api.rest.store import Store
from localvertex.console.runs import note
from localvertex.console.runs.outputs import job_of
from localvertex.show.view import fields, shape
from localvertex.store import journal, record, run_folder
from localvertex.store.task import State

_LOCK_SECONDS = 2.0
"""Time between two checks of a run's lock, which shows whether its process is alive."""


@dataclass(frozen=True, kw_only=True)
class RecordSnapshot:
    """A record at one moment."""

    content: JsonObject
    problem: str = ""
    """Why it cannot be read; empty if it can."""
    is_removed: bool = False

    @property
    def is_final(self) -> bool:
        """Return whether the run has ended."""
        return bool(self.content) and State(self.content["state"]).is_final


class Watched:
    """One run; its streams share what is read. Any thread may call `read`."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self._lock = threading.Lock()
        self._signature: object = None
        self._reading = RecordSnapshot(content={})
        self._is_alive, self._next_look = False, 0.0

    def read(self) -> RecordSnapshot:
        """Return the record: the same object until one of its files changes."""
        with self._lock:
            if not self._reading.is_final and time.monotonic() >= self._next_look:
                self._is_alive = record.is_running(self.run_dir)
                self._next_look = time.monotonic() + _LOCK_SECONDS
            journals = sorted(self.run_dir.glob(journal.PATTERN))
            # The page is written after the last record.
            files = (*(self.run_dir / each for each in (record.FILE, record.PAGE, note.FILE)), *journals)
            now = [signature(str(each)) for each in files], self._is_alive
            # Its process may have ended between two checks of the lock.
            was_killed = bool(self._reading.content) and not self._reading.is_final and not self._is_alive
            if now != self._signature or was_killed:
                self._reading, self._signature = self._read(), now
            return self._reading

    def _read(self) -> RecordSnapshot:
        try:
            return RecordSnapshot(content=_without_running_tasks(shape.read(self.run_dir)))
        except FileNotFoundError:
            text = f"the run {self.run_dir.name} was deleted"
            return RecordSnapshot(content={}, problem=text, is_removed=True)
        except (OSError, ValueError) as error:
            return RecordSnapshot(content={}, problem=f"the record of {self.run_dir.name} cannot be read: {error}")


class WatchedRuns:
    """The runs that are being watched.

    Args:
        store: The records of the server.
        is_here: Returns whether this server executes a run, and can therefore stop it.
    """

    def __init__(self, store: Store, is_here: Callable[[str], bool] = lambda run_id: False) -> None:
        self._store, self.work_dir, self._is_here = store, store.folder.parent, is_here
        self._lock = threading.Lock()
        self._watched: WeakValueDictionary[Path, Watched] = WeakValueDictionary()

    def watch(self, run_dir: Path) -> Watched:
        """Return a run, which is kept as long as its caller keeps it."""
        with self._lock:
            return self._watched.setdefault(run_dir, Watched(run_dir))

    def content(self, run_dir: Path) -> JsonObject:
        """Return the record of a run.

        Raises:
            ApiError: It cannot be read.
        """
        reading = self.watch(run_dir).read()
        if reading.problem:
            raise ApiError(Status.FAILED_PRECONDITION, reading.problem)
        return reading.content

    def fields(self, run_dir: Path, content: JsonObject) -> JsonObject:
        """Return the fields of a run: its record, and the console's additions."""
        resource = job_of(self._store, run_dir.name)
        is_running = not State(content["state"]).is_final
        state, error = state_and_error(resource, content, run_dir)
        found, given = fields.of_run(run_dir, content, state=state, error=error), note.read(run_dir)
        return found | {
            "name": given["name"] or resource.get("displayName") or run_dir.name,
            "given": given,
            "resource": resource.get("name"),
            "schedule": resource.get("scheduleName"),
            "is_own": bool(resource),
            "is_ending": is_running and was_started_here(resource, content) and not self._is_here(run_dir.name),
            "is_running_here": is_running and self._is_here(run_dir.name),
            "has_page": (run_dir / record.PAGE).is_file(),
        }

    def answer(self, run_dir: Path) -> JsonObject:
        """Return the whole record, with the description and the defaults of the compiled file."""
        reading = self.watch(run_dir).read()
        if not reading.content:
            return {"id": run_dir.name, "problem": reading.problem}
        return self.fields(run_dir, reading.content) | _of_file(run_dir) | {"tasks": reading.content["tasks"]}


def _without_running_tasks(content: JsonObject) -> JsonObject:
    """Return the record of a run; when its process was killed, no task is running any more."""
    if not State(content["state"]).is_final:
        return content
    stopped = {"state": str(State.CANCELLED), "note": "stopped when the run was killed"}
    return content | {
        "tasks": [each | stopped if each["state"] == State.RUNNING else each for each in content["tasks"]]
    }


def _of_file(run_dir: Path) -> JsonObject:
    """Return the description and the default values of the compiled file; nothing when it cannot be read."""
    try:
        return fields.of_file(load.load(run_folder.pipeline_copy(run_dir)).pipeline)
    except (UserError, OSError):
        return {"description": "", "defaults": {}}
