"""The records of custom jobs: what they contain, and what became of a job whose server was killed."""

import threading
from collections.abc import Container
from pathlib import Path
from typing import Any

from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import Status, rpc_error
from localvertex.api.rest.store import Damaged, Store
from localvertex.jobs.status import FINAL_STATES, JobState
from localvertex.store import record

COLLECTION = "customJobs"

_STOPPED = "the server was stopped while this job was running; create it again"

Resource = dict[str, Any]


class JobRecords:
    """The stored jobs, each with a folder for its files.

    Args:
        store: The records of the server.
    """

    def __init__(self, store: Store) -> None:
        self._store, self.work_dir = store, store.folder.parent
        store.expect(COLLECTION, _check)

    @property
    def lock(self) -> threading.RLock:
        """Hold it from a read to the write that depends on it."""
        return self._store.lock

    def folder(self, number: str) -> Path:
        """Return where the files of a job are."""
        return self._store.folder / COLLECTION / number

    def mark(self, number: str) -> Path:
        """Return the empty file of a job that a client cancelled, which needs no room on a full disk."""
        return self.folder(number) / "cancelled"

    def read_stored(self, number: str) -> Resource:
        """Return the record of a job, empty if it was damaged or deleted while the job was running."""
        try:
            return self._store.read(COLLECTION, number) or {}
        except Damaged:
            return {}

    def update(self, number: str, **changes: Any) -> None:
        """Change the fields of a job, in memory while the disk is full; its first `startTime` stays."""
        with self.lock:
            job = self.read_stored(number)
            changes = {key: value for key, value in changes.items() if key != "startTime" or key not in job}
            if job and any(job.get(key) != value for key, value in changes.items()):
                self._store.keep(COLLECTION, number, job | changes | {"updateTime": record.now()})

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
            self.update(number, **stop_fields(job | cancelled), endTime=record.now())
            return self.read_stored(number) or job


def stop_fields(job: Resource) -> Resource:
    """Return the fields of a job that ended with its server."""
    if job.get("state") == JobState.CANCELLING:
        return {"state": str(JobState.CANCELLED)}
    return {"state": str(JobState.FAILED), "error": rpc_error(Status.ABORTED, _STOPPED)}


def damaged_resource(call: Call, number: str, reason: str) -> Resource:
    """Build the stand-in for a job whose record is damaged."""
    error = rpc_error(Status.INTERNAL, f"its record is damaged ({reason}); delete it")
    job = {"name": call.location.child(COLLECTION, number), "displayName": number}
    return job | {"state": str(JobState.FAILED), "error": error}


def _check(job: Resource) -> None:
    """Raise one of `UNUSABLE` when the record of a job is damaged."""
    JobState(job["state"])
    if not all(isinstance(job[name], str) for name in ("displayName", "createTime", "updateTime")):
        raise TypeError("a field is not a string")
    job["jobSpec"].keys(), job.get("labels", {}).keys(), job.get("error", {}).get("message", "").strip()
