"""A collection of jobs: their records, the threads in which they run, and what the API does with them.

Records have the states of custom jobs. Training pipelines have the same under other names, which only `_shown` knows.
"""

import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

from localvertex._base.lines import WriteLine
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found, rpc_error
from localvertex.api.rest.listing import page_of
from localvertex.api.rest.operations import finished_operation
from localvertex.api.rest.records import Resource, StoredRecords, Viewed
from localvertex.api.rest.store import Damaged, Store
from localvertex.errors import Cancelled, TaskFailed
from localvertex.executors.step_jobs import StepJobs
from localvertex.jobs import JobState
from localvertex.jobs.status import FINAL_STATES
from localvertex.processes.processes import Processes
from localvertex.store import record, run_folder
from localvertex.values import facts

_GRACE_SECONDS = facts.number("grace.end")

_STOPPED = "the server, or the run, was stopped while this job was running; create it again"


class RunningJob:
    """A job while its thread runs.

    Args:
        resource: Its first record.
        folder: Folder with its files.
        log: Called with its messages.
        owner: The jobs of the step that creates it; None: a client does.
    """

    def __init__(self, resource: Resource, folder: Path, log: WriteLine, owner: StepJobs | None = None) -> None:
        self.resource, self.folder, self.owner = resource, folder, owner
        self._log = owner.attempt.report if owner else log
        self.number, self.name = folder.name, f"{folder.parent.name}/{folder.name}"
        self.hold = run_folder.lock(folder)
        """Held until the last process of the job has ended, even when this server is killed."""
        hold = self.hold.fileno()
        self.processes = owner.processes(hold) if owner else Processes(grace_seconds=_GRACE_SECONDS, holds=[hold])
        """Its processes; they are stopped when it is cancelled, and with the server or its run."""
        self.end = Future[Resource]()
        """The fields with which it ended."""

    def report(self, text: str) -> None:
        """Log an event."""
        self._log(f"{self.name}: {text}")

    def warn(self, text: str) -> None:
        """Log a warning."""
        self.report(f"warning: {text}")


Work = Callable[[RunningJob], Resource]
"""Runs a job to its end, and returns its last fields, with its state; Cancelled when it was stopped."""


class JobCollection:
    """The jobs of a kind. Each has a folder for its files; each running job has a thread of this process.

    Args:
        store: The records of the server.
        log: Called with the start, the end and the warnings of each job.
    """

    collection: ClassVar[str]
    message: ClassVar[str]
    objects: ClassVar[tuple[str, ...]]
    """Fields of a request that are objects; they are large, so that lists read them only if they have to."""
    optional: ClassVar[tuple[str, ...]] = ()
    """The other fields of a request, besides those that all kinds have."""
    states: ClassVar[str] = "JOB_STATE"
    """Prefix of the states in the API."""

    def __init__(self, store: Store, log: WriteLine) -> None:
        self._store, self._log = store, log
        self._running: dict[str, tuple[RunningJob, Thread]] = {}
        self._is_closed = False
        record_of_a_job = {
            "state!": frozenset(JobState),
            **dict.fromkeys(("displayName!", "createTime!", "updateTime!"), str),
            "error": {"message": str},
            **dict.fromkeys(("labels", f"{self.objects[0]}!", *self.objects), dict),
        }
        store.expect(self.collection, record_of_a_job)
        self._listed = StoredRecords(
            store=store,
            collection=self.collection,
            large=frozenset(self.objects),
            stand_in=self._damaged,
            view=self._list_view,
        )

    def get(self, call: Call) -> Resource:
        """Return one job."""
        return self._listed.get(call)

    def list_all(self, call: Call) -> Resource:
        """List the jobs of a location."""
        return page_of(call, self._listed, fields=messages.field_names(self.message))

    def cancel(self, call: Call) -> Resource:
        """Ask a running job to stop; one that has ended is unchanged."""
        with self._store.lock:
            with suppress(Damaged):
                self._store.find(call, self.collection)
            self.stop(call.resource_id)
        return {}

    def stop(self, number: str) -> None:
        """Ask a job to stop, if this process executes it."""
        with self._store.lock:
            if number in self._running:
                with suppress(OSError):
                    self._mark(number).touch()
                self._update(number, state=str(JobState.CANCELLING))
                self._running[number][0].processes.stop()

    def delete(self, call: Call) -> Resource:
        """Delete a job that has ended, with its logs; files that it wrote elsewhere stay."""
        folder = self._folder(call.resource_id)
        with self._store.lock:
            with suppress(Damaged):
                self._store.find(call, self.collection)
            if record.is_running(folder):
                raise ApiError(Status.FAILED_PRECONDITION, f"{call.resource_id} is running; cancel it first")
            # The record comes last, so that an interrupted deletion can be completed.
            shutil.rmtree(folder, ignore_errors=True)
            self._store.remove(self.collection, call.resource_id)
        return finished_operation(call, "DeleteOperationMetadata")

    def find(self, number: str) -> tuple[Resource, Path]:
        """Return a job of any location, and its folder.

        Raises:
            ApiError: It does not exist, or its record is damaged.
        """
        try:
            job = self._store.read(self.collection, number)
        except Damaged as error:
            raise error.api_error(f"{self.collection}/{number}") from None
        if job is None:
            raise not_found(f"{self.collection}/{number[:200]}")
        return self._current(job), self._folder(number)

    def close(self) -> None:
        """Stop all jobs and wait for them; they become FAILED, because no client cancelled them."""
        with self._store.lock:
            self._is_closed = True
            running = [*self._running.values()]
            for job, _ in running:
                job.processes.stop()
        for _, thread in running:
            thread.join()

    def inputs(self, body: Resource) -> Resource:
        """Return the fields of a request that the record keeps."""
        names = ("displayName", "labels", "encryptionSpec", *self.objects, *self.optional)
        return {name: body[name] for name in names if name in body}

    def _start(
        self,
        location: Location,
        body: Resource,
        work: Work,
        warnings: Iterable[str] = (),
        *,
        owner: StepJobs | None = None,
        fields: Resource | None = None,
    ) -> RunningJob:
        """Record a new job and start it; its folder is removed if it cannot be started.

        Args:
            location: The location in which it is created.
            body: The request, which has been checked.
            work: Runs it.
            warnings: The warnings to show.
            owner: The jobs of the step that creates it; None: a client does.
            fields: Further fields of the record.

        Raises:
            ApiError: It has no display name, or the server is being stopped.
            NotGranted: The step has ended.
        """
        if not body.get("displayName"):
            raise invalid("displayName is missing")
        number, now = record.new_number(), record.now()
        resource = {"name": location.child(self.collection, number), "state": str(JobState.PENDING)}
        resource |= {"createTime": now, "updateTime": now, **self.inputs(body), **(fields or {})}
        folder = self._folder(number)
        folder.mkdir(parents=True)
        job = RunningJob(resource, folder, self._log, owner)
        thread = Thread(target=self._execute, args=(job, work), name=job.name)
        try:
            with self._store.lock:
                if self._is_closed:
                    raise ApiError(Status.UNAVAILABLE, "the server is being stopped")
                if owner:
                    owner.add(number, lambda: self.stop(number), job.end)
                self._store.write(self.collection, number, resource)
                self._running[number] = job, thread
                thread.start()
        except BaseException:
            self._running.pop(number, None)
            job.hold.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        for text in warnings:
            job.warn(text)
        return job

    def _execute(self, job: RunningJob, work: Work) -> None:
        job.report(f"started, logs in {job.owner.attempt.folder if job.owner else job.folder}")
        try:
            fields = work(job)
        except Cancelled:
            fields = {"state": str(JobState.CANCELLED)}
        except Exception as error:  # the server keeps running, whatever happened to the job
            of_users = Status.INVALID_ARGUMENT if isinstance(error, TaskFailed) else Status.INTERNAL
            fields = failed(error.status if isinstance(error, ApiError) else of_users, str(error))
        with self._store.lock:
            # The end of its step cancels a job.
            if fields["state"] == JobState.CANCELLED and job.owner is None:
                fields |= self._stop_fields(self._read_stored(job.number))
            self._update(job.number, **fields, endTime=record.now())
            self._running.pop(job.number, None)
            # Last, because another process that reads the record before takes the job for one that was killed.
            job.hold.close()
        job.end.set_result(fields)
        reason = f", {fields['error']['message']}" if "error" in fields else ""
        job.report(f"{fields['state']}{reason}")

    def _follow(self, job: RunningJob, state: JobState) -> None:
        """Record that a job waits or runs, unless it is being stopped."""
        fields = {"startTime": record.now()} if state is JobState.RUNNING else {}
        with self._store.lock:
            if not job.processes.stopped.is_set():
                self._update(job.number, state=str(state), **fields)
            elif job.owner:
                self._update(job.number, state=str(JobState.CANCELLING))

    def _folder(self, number: str) -> Path:
        """Return the folder of a job's files."""
        return self._store.folder / self.collection / number

    def _mark(self, number: str) -> Path:
        """Return the empty file of a job that a client cancelled, which needs no room on a full disk."""
        return self._folder(number) / "cancelled"

    def _read_stored(self, number: str) -> Resource:
        """Return the record of a job, empty if it was damaged or deleted while the job was running."""
        with suppress(Damaged):
            return self._store.read(self.collection, number) or {}
        return {}

    def _update(self, number: str, **changes: Any) -> None:
        """Change the fields of a job, in memory while the disk is full; its first `startTime` stays."""
        with self._store.lock:
            job = self._read_stored(number)
            changes = {key: value for key, value in changes.items() if key != "startTime" or key not in job}
            if job and any(job.get(key) != value for key, value in changes.items()):
                self._store.keep(self.collection, number, job | changes | {"updateTime": record.now()})

    def _current(self, job: Resource) -> Resource:
        """Return a job; it becomes FAILED or CANCELLED when its server and its last process have ended."""
        if job["state"] in FINAL_STATES:
            return job
        number = job["name"].rpartition("/")[2]
        with self._store.lock:
            job = self._read_stored(number) or job
            if job["state"] in FINAL_STATES or number in self._running or record.is_running(self._folder(number)):
                return job
            cancelled = {"state": str(JobState.CANCELLING)} if self._mark(number).exists() else {}
            self._update(number, **self._stop_fields(job | cancelled), endTime=record.now())
            return self._read_stored(number) or job

    def _stop_fields(self, job: Resource) -> Resource:
        """Return the fields of a job that ended with its server."""
        if job.get("state") == JobState.CANCELLING:
            return {"state": str(JobState.CANCELLED)}
        return failed(Status.ABORTED, _STOPPED)

    def _shown(self, job: Resource) -> Resource:
        """Return a job as the API has it."""
        return job | {"state": job["state"].replace("JOB_STATE", self.states)}

    def _list_view(self, job: Resource) -> Viewed:
        """Return a job for lists; the index contains only those that have ended."""
        job = self._current(job)
        return Viewed(resource=self._shown(job), is_sound=job["state"] in FINAL_STATES)

    def _damaged(self, call: Call, number: str, reason: str) -> Resource:
        """Build the stand-in for a job whose record is damaged."""
        fields = failed(Status.INTERNAL, f"its record is damaged ({reason}); delete it")
        return self._shown({"name": call.location.child(self.collection, number), "displayName": number} | fields)


def failed(status: Status, reason: str) -> Resource:
    """Return the fields of a job that has failed."""
    return {"state": str(JobState.FAILED), "error": rpc_error(status, reason)}
