"""The records of jobs: what they contain, and what became of a job whose server was killed.

Records have the states of custom jobs. Training pipelines have the same under other names, which only `show` knows.
"""

import threading
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import Status, rpc_error
from localvertex.api.rest.store import Damaged, Store
from localvertex.jobs.status import FINAL_STATES, JobState
from localvertex.store import record

_STOPPED = "the server was stopped while this job was running; create it again"

Resource = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """A kind of jobs: its name in the API and its fields."""

    collection: str
    message: str
    objects: tuple[str, ...]
    """Fields of a request that are objects; they are large, so that lists read them only if they have to."""
    optional: tuple[str, ...] = ()
    """The other fields of a request, besides those that all kinds have."""
    states: str = "JOB_STATE"
    """Prefix of the states in the API."""

    def inputs(self, body: Resource) -> Resource:
        """Return the fields of a request that the record keeps."""
        names = ("displayName", "labels", "encryptionSpec", *self.objects, *self.optional)
        return {name: body[name] for name in names if name in body}

    def show(self, job: Resource) -> Resource:
        """Return a job with the API's state."""
        return job | {"state": job["state"].replace("JOB_STATE", self.states)}

    def damaged_resource(self, call: Call, number: str, reason: str) -> Resource:
        """Build the stand-in for a job whose record is damaged."""
        error = rpc_error(Status.INTERNAL, f"its record is damaged ({reason}); delete it")
        job = {"name": call.location.child(self.collection, number), "displayName": number}
        return self.show(job | {"state": str(JobState.FAILED), "error": error})

    def check(self, job: Resource) -> None:
        """Raise one of `UNUSABLE` when the record of a job is damaged."""
        JobState(job["state"])
        if not all(isinstance(job[name], str) for name in ("displayName", "createTime", "updateTime")):
            raise TypeError("a field is not a string")
        first, *others = self.objects
        job[first].keys(), job.get("labels", {}).keys(), job.get("error", {}).get("message", "").strip()
        for name in others:
            job.get(name, {}).keys()


class JobRecords:
    """The stored jobs of a kind, each with a folder for its files.

    Args:
        store: The records of the server.
        kind: The kind.
        stop_fields: Returns the fields of a job that ended with its server.
    """

    def __init__(self, store: Store, kind: JobKind, stop_fields: Callable[[Resource], Resource]) -> None:
        self._store, self.collection, self.stop_fields = store, kind.collection, stop_fields
        store.expect(self.collection, kind.check)

    @property
    def lock(self) -> threading.RLock:
        """Hold it from a read to the write that depends on it."""
        return self._store.lock

    def folder(self, number: str) -> Path:
        """Return where the files of a job are."""
        return self._store.folder / self.collection / number

    def mark(self, number: str) -> Path:
        """Return the empty file of a job that a client cancelled, which needs no room on a full disk."""
        return self.folder(number) / "cancelled"

    def read_stored(self, number: str) -> Resource:
        """Return the record of a job, empty if it was damaged or deleted while the job was running."""
        try:
            return self._store.read(self.collection, number) or {}
        except Damaged:
            return {}

    def update(self, number: str, **changes: Any) -> None:
        """Change the fields of a job, in memory while the disk is full; its first `startTime` stays."""
        with self.lock:
            job = self.read_stored(number)
            changes = {key: value for key, value in changes.items() if key != "startTime" or key not in job}
            if job and any(job.get(key) != value for key, value in changes.items()):
                self._store.keep(self.collection, number, job | changes | {"updateTime": record.now()})

    def current(self, job: Resource, here: Container[str]) -> Resource:
        """Return a job; it becomes FAILED or CANCELLED when its server and its last process have ended.

        Args:
            job: Its record.
            here: The jobs that this server executes.
        """
        if job["state"] in FINAL_STATES:
            return job
        number = job["name"].rpartition("/")[2]
        with self.lock:
            job = self.read_stored(number) or job
            if job["state"] in FINAL_STATES or number in here or record.is_running(self.folder(number)):
                return job
            cancelled = {"state": str(JobState.CANCELLING)} if self.mark(number).exists() else {}
            self.update(number, **self.stop_fields(job | cancelled), endTime=record.now())
            return self.read_stored(number) or job


def failed(status: Status, reason: str) -> Resource:
    """Return the fields of a job that has failed."""
    return {"state": str(JobState.FAILED), "error": rpc_error(status, reason)}


def stop_fields(job: Resource) -> Resource:
    """Return the fields of a job that ended with its server."""
    if job.get("state") == JobState.CANCELLING:
        return {"state": str(JobState.CANCELLED)}
    return failed(Status.ABORTED, _STOPPED)
