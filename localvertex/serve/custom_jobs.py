"""customJobs: worker pools as processes of this machine, with the job engine of pipelines' custom jobs."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from localvertex import custom_jobs
from localvertex.custom_jobs import JobState, Outcome, Status, Workspace
from localvertex.errors import TaskFailed
from localvertex.processes.processes import Processes
from localvertex.serve.api import errors, messages
from localvertex.serve.api.call import Call
from localvertex.serve.api.errors import ApiError, invalid, not_found
from localvertex.serve.api.listing import page
from localvertex.serve.api.operations import Operations
from localvertex.serve.api.store import Store
from localvertex.serve.pipeline_job_view import rpc_error
from localvertex.state import record

COLLECTION = "customJobs"

BUCKETS = "buckets"
"""Folder of the work directory that holds a folder for each bucket."""

INPUT_FIELDS = ("displayName", "jobSpec", "labels", "encryptionSpec")

FIELDS = {*INPUT_FIELDS, "name", "state", "createTime", "startTime", "endTime", "updateTime", "error", "webAccessUris"}

FINAL = {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}

GRACE_SECONDS = 10.0


class CustomJobs:
    """The custom jobs of the API; those that run, run in threads of this process."""

    def __init__(self, store: Store, operations: Operations, say: Callable[[str], None]) -> None:
        self._store, self._operations, self._say = store, operations, say
        self._running: dict[str, tuple[threading.Event, threading.Thread]] = {}

    def create(self, call: Call) -> dict[str, Any]:
        """Starts a job."""
        body = messages.normalised(call.version, "CustomJob", call.body)
        warnings: list[str] = []
        try:
            job = custom_jobs.read(body, region=call.location.region, warn=warnings.append)
        except TaskFailed as error:
            raise invalid(str(error)) from None
        if not job.display_name:
            raise invalid("displayName is missing")
        number, now = str(uuid4().int >> 66), record.now()
        resource = {"name": call.location.child(COLLECTION, number), "state": str(JobState.PENDING)}
        resource |= {"createTime": now, "updateTime": now, **{key: body[key] for key in INPUT_FIELDS if key in body}}
        for text in warnings:
            self._say(f"customJobs/{number}: warning: {text}")
        cancel = threading.Event()
        workspace = Workspace(
            folder=self._folder(number),
            private_dir=self._store.folder.parent / record.PRIVATE,
            project=call.location.project,
            buckets=self._store.folder.parent / BUCKETS,
        )
        thread = threading.Thread(
            target=self._execute, args=(number, job, workspace, cancel), name=f"custom job {number}"
        )
        with self._store.lock:
            self._store.write(COLLECTION, number, resource)
            self._running[number] = cancel, thread
            thread.start()
        return resource

    def get(self, call: Call) -> dict[str, Any]:
        """One job."""
        return self._find(call)

    def list_all(self, call: Call) -> dict[str, Any]:
        """The jobs of a location."""
        return page(call, COLLECTION, self._store.all(COLLECTION), fields=FIELDS)

    def cancel(self, call: Call) -> dict[str, Any]:
        """Asks a running job to stop; one that has ended stays as it is."""
        with self._store.lock:
            self._find(call)
            if call.resource_id in self._running:
                self._update(call.resource_id, state=str(JobState.CANCELLING))
                self._running[call.resource_id][0].set()
        return {}

    def delete(self, call: Call) -> dict[str, Any]:
        """Removes a job that has ended, with its logs; what it wrote elsewhere stays."""
        with self._store.lock:
            self._find(call)
            if call.resource_id in self._running:
                raise ApiError(errors.Status.FAILED_PRECONDITION, f"{call.resource_id} is running; cancel it first")
            self._store.remove(COLLECTION, call.resource_id)
            shutil.rmtree(self._folder(call.resource_id), ignore_errors=True)
        return self._operations.done(call, "DeleteOperationMetadata")

    def begin(self) -> None:
        """At the server's start: what an earlier one was running died with it."""
        for job in self._store.all(COLLECTION):
            if job["state"] not in FINAL:
                text = "the server was stopped while this job was running; create it again"
                error = rpc_error(errors.Status.ABORTED, text)
                number = job["name"].rpartition("/")[2]
                self._update(number, state=str(JobState.FAILED), error=error, endTime=record.now())

    def close(self) -> None:
        """Stops what runs and waits for it; those jobs are FAILED, for nobody has cancelled them."""
        with self._store.lock:
            running = dict(self._running)
            for cancel, _ in running.values():
                cancel.set()
        for _, thread in running.values():
            thread.join()

    def _execute(self, number: str, job: custom_jobs.CustomJob, workspace: Workspace, cancel: threading.Event) -> None:
        def observe(status: Status) -> None:
            if status.state is JobState.RUNNING:
                with self._store.lock:
                    if not cancel.is_set():
                        self._update(number, state=str(status.state), startTime=record.now())

        def warn(text: str) -> None:
            self._say(f"customJobs/{number}: warning: {text}")

        self._say(f"customJobs/{number}: running, logs in {workspace.folder}")
        try:
            processes = Processes(grace_seconds=GRACE_SECONDS)
            outcome = custom_jobs.run(
                job, workspace=workspace, processes=processes, observe=observe, warn=warn, cancel=cancel
            )
            changes = end_of(outcome)
        except Exception as error:  # the server goes on, whatever happened to the job
            status = errors.Status.INVALID_ARGUMENT if isinstance(error, TaskFailed) else errors.Status.INTERNAL
            changes = {"state": str(JobState.FAILED), "error": rpc_error(status, str(error))}
        with self._store.lock:
            wanted = (self._store.read(COLLECTION, number) or {}).get("state")
            if changes["state"] == JobState.CANCELLED and wanted != JobState.CANCELLING:
                text = "the server was stopped while this job was running; create it again"
                changes = {"state": str(JobState.FAILED), "error": rpc_error(errors.Status.ABORTED, text)}
            self._update(number, **changes, endTime=record.now())
            self._running.pop(number, None)
        self._say(f"customJobs/{number}: {changes['state']}{describe(changes)}")

    def _folder(self, number: str) -> Path:
        return self._store.folder / COLLECTION / number

    def _update(self, number: str, **changes: Any) -> None:
        with self._store.lock:
            job = self._store.read(COLLECTION, number) or {}
            changes = {key: value for key, value in changes.items() if key != "startTime" or key not in job}
            if any(job.get(key) != value for key, value in changes.items()):
                self._store.write(COLLECTION, number, job | changes | {"updateTime": record.now()})

    def _find(self, call: Call) -> dict[str, Any]:
        name = call.location.child(COLLECTION, call.resource_id)
        job = self._store.read(COLLECTION, call.resource_id)
        if job is None or job["name"] != name:
            raise not_found(name)
        return job


def end_of(outcome: Outcome) -> dict[str, Any]:
    """The fields that a job's end decides."""
    changes: dict[str, Any] = {"state": str(outcome.state)}
    if outcome.state is JobState.FAILED:
        # The service calls the exit of a user's program an invalid argument.
        is_users = outcome.exit_code is not None
        status = errors.Status.INVALID_ARGUMENT if is_users else errors.Status.ABORTED
        changes["error"] = rpc_error(status, outcome.error)
    return changes


def describe(changes: dict[str, Any]) -> str:
    """The error in words, after a comma."""
    return f", {changes['error']['message']}" if "error" in changes else ""
