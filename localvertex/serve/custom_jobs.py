"""customJobs: worker pools run as processes of this machine, with the same code as in pipelines."""

import shutil
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from localvertex import custom_jobs
from localvertex.containers.serving.machine import Machine
from localvertex.credentials.isolation import Credentials, NoCredentials
from localvertex.custom_jobs import JobState, Outcome, Status, Workspace, images
from localvertex.custom_jobs.environment import OUTPUT_FOLDERS
from localvertex.custom_jobs.status_file import StatusFile
from localvertex.engine import Options
from localvertex.errors import TaskFailed
from localvertex.processes.processes import Processes
from localvertex.runner.endpoint.steps_endpoint import StepsEndpoint
from localvertex.serve.api import errors, messages
from localvertex.serve.api.call import Call
from localvertex.serve.api.errors import ApiError, invalid, not_found, rpc_error
from localvertex.serve.api.listing import page_of
from localvertex.serve.api.operations import Operations
from localvertex.serve.api.records import StoredRecords, Viewed
from localvertex.serve.api.store import Damaged, Store
from localvertex.state import record, run_folder

COLLECTION = "customJobs"

_BUCKETS = "buckets"
"""The folder of the work directory that has one folder per bucket."""

_INPUT_FIELDS = ("displayName", "jobSpec", "labels", "encryptionSpec")

_FINAL = {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}

_GRACE_SECONDS = 10.0

_STOPPED = "the server was stopped while this job was running; create it again"


class CustomJobs:
    """The custom jobs of the API; running ones have a thread of this process each."""

    def __init__(
        self,
        store: Store,
        operations: Operations,
        log: Callable[[str], None],
        options: Options,
    ) -> None:
        self._store, self._operations, self._log = store, operations, log
        self._options, self._containers = options.custom_jobs, options.container_choice
        self._command_prefixes, self._server = options.command_prefixes, options.server
        self.buckets = options.gcs_root.absolute() if options.gcs_root else store.folder.parent / _BUCKETS
        """The folder that has one folder per bucket."""
        self._running: dict[str, tuple[threading.Event, threading.Thread]] = {}
        self.when_ended: Callable[[dict[str, Any], Path], None] = lambda job, logs: None
        """Called with each job that has ended and the folder of its TensorBoard logs."""
        store.expect(COLLECTION, _check_record)
        self.records = StoredRecords(
            store=store,
            collection=COLLECTION,
            large=frozenset({"jobSpec"}),
            stand_in=damaged_resource,
            view=self._viewed,
        )

    def create(self, call: Call) -> dict[str, Any]:
        """Start a job."""
        body = messages.checked(call.version, "CustomJob", call.body)
        warnings: list[str] = []
        try:
            job = custom_jobs.read(
                body,
                region=call.location.region,
                command_prefixes=self._command_prefixes,
                warn=warnings.append,
                has_images=bool(self._containers.options.engine),
            )
            images.check(job, self._containers)
        except TaskFailed as error:
            raise invalid(str(error)) from None
        if not job.display_name:
            raise invalid("displayName is missing")
        number, now = str(uuid4().int >> 66), record.now()
        resource = {"name": call.location.child(COLLECTION, number), "state": str(JobState.PENDING)}
        resource |= {"createTime": now, "updateTime": now, **{key: body[key] for key in _INPUT_FIELDS if key in body}}
        for text in warnings:
            self._log(f"customJobs/{number}: warning: {text}")
        cancel = threading.Event()
        workspace = Workspace(
            folder=self._folder(number),
            private_dir=self._store.folder.parent / record.PRIVATE,
            project=call.location.project,
            buckets=self.buckets,
        )
        workspace.folder.mkdir(parents=True)
        # Held until the last process of the job has ended, even when this server is killed.
        hold = run_folder.lock(workspace.folder)
        thread = threading.Thread(
            target=self._execute, args=(number, job, workspace, cancel, hold), name=f"custom job {number}"
        )
        try:
            with self._store.lock:
                self._store.write(COLLECTION, number, resource)
                self._running[number] = cancel, thread
                thread.start()
        except BaseException:
            self._running.pop(number, None)
            hold.close()
            shutil.rmtree(workspace.folder, ignore_errors=True)
            raise
        return resource

    def get(self, call: Call) -> dict[str, Any]:
        """Return one job."""
        try:
            return self._find(call)
        except Damaged as error:
            return damaged_resource(call, call.resource_id, str(error))

    def list_all(self, call: Call) -> dict[str, Any]:
        """List the jobs of a location."""
        fields = messages.field_names(call.version, "CustomJob")
        return page_of(call, self.records, fields=fields)

    def cancel(self, call: Call) -> dict[str, Any]:
        """Ask a running job to stop; one that has ended is unchanged."""
        with self._store.lock:
            with suppress(Damaged):
                self._find(call)
            if call.resource_id in self._running:
                self._update(call.resource_id, state=str(JobState.CANCELLING))
                self._running[call.resource_id][0].set()
        return {}

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete a job that has ended, with its logs; files that it wrote elsewhere stay."""
        with self._store.lock:
            with suppress(Damaged):
                self._find(call)
            if record.is_running(self._folder(call.resource_id)):
                raise ApiError(errors.Status.FAILED_PRECONDITION, f"{call.resource_id} is running; cancel it first")
            # The record comes last, so that an interrupted deletion can be completed.
            shutil.rmtree(self._folder(call.resource_id), ignore_errors=True)
            self._store.remove(COLLECTION, call.resource_id)
        return self._operations.done(call, "DeleteOperationMetadata")

    def find(self, number: str) -> tuple[dict[str, Any], Path]:
        """Return a job of any location, and its folder.

        Raises:
            ApiError: It does not exist, or its record is damaged.
        """
        try:
            job = self._store.read(COLLECTION, number)
        except Damaged as error:
            raise error.api_error(f"{COLLECTION}/{number}") from None
        if job is None:
            raise not_found(f"{COLLECTION}/{number[:200]}")
        return self._current(job), self._folder(number)

    def close(self) -> None:
        """Stop the running jobs and wait for them; they become FAILED, because no client cancelled them."""
        with self._store.lock:
            running = dict(self._running)
            for cancel, _ in running.values():
                cancel.set()
        for _, thread in running.values():
            thread.join()

    def _endpoint(self, processes: Processes, credentials: Credentials, warn: Callable[[str], None]) -> StepsEndpoint:
        """Return the endpoint that the replicas of a job find."""
        machine = Machine(
            work_dir=self._store.folder.parent,
            processes=processes,
            credentials=credentials,
            choice=self._containers,
            command_prefixes=self._command_prefixes,
        )
        return StepsEndpoint(machine, self._server, warn)

    def _execute(
        self, number: str, job: custom_jobs.CustomJob, workspace: Workspace, cancel: threading.Event, hold: IO[str]
    ) -> None:
        def observe(status: Status) -> None:
            if status.state is JobState.RUNNING:
                with self._store.lock:
                    if not cancel.is_set():
                        self._update(number, state=str(status.state), startTime=record.now())
            status_file.write(status)

        def warn(text: str) -> None:
            self._log(f"customJobs/{number}: warning: {text}")

        self._log(f"customJobs/{number}: running, logs in {workspace.folder}")
        ledger = self._options.new_ledger()
        try:
            processes = Processes(grace_seconds=_GRACE_SECONDS)
            processes.hold = hold.fileno()
            with (
                closing(NoCredentials()) as credentials,
                self._endpoint(processes, credentials, warn),
            ):
                status_file = StatusFile(workspace.folder, credentials.secrets.removed)
                outcome = custom_jobs.run(
                    job,
                    workspace=workspace,
                    processes=processes,
                    credentials=credentials,
                    containers=self._containers,
                    observe=observe,
                    warn=warn,
                    report=lambda text: self._log(f"customJobs/{number}: {text}"),
                    cancel=cancel,
                    options=self._options,
                    ledger=ledger,
                )
            changes = _end_of(outcome)
            if job.base_output_directory:
                base = Path(workspace.localised(job.base_output_directory))
                self.when_ended(self._stored(number), base / OUTPUT_FOLDERS["AIP_TENSORBOARD_LOG_DIR"])
            for text in ledger.unused:
                warn(text)
        except Exception as error:  # the server keeps running, whatever happened to the job
            status = errors.Status.INVALID_ARGUMENT if isinstance(error, TaskFailed) else errors.Status.INTERNAL
            changes = {"state": str(JobState.FAILED), "error": rpc_error(status, str(error))}
        with self._store.lock:
            wanted = self._stored(number).get("state")
            if changes["state"] == JobState.CANCELLED and wanted != JobState.CANCELLING:
                changes = {"state": str(JobState.FAILED), "error": rpc_error(errors.Status.ABORTED, _STOPPED)}
            self._running.pop(number, None)
            hold.close()
            self._update(number, **changes, endTime=record.now())
        self._log(f"customJobs/{number}: {changes['state']}{_describe(changes)}")

    def _folder(self, number: str) -> Path:
        return self._store.folder / COLLECTION / number

    def _stored(self, number: str) -> dict[str, Any]:
        """Return the record of a job, empty if it was damaged or deleted while the job was running."""
        try:
            return self._store.read(COLLECTION, number) or {}
        except Damaged:
            return {}

    def _update(self, number: str, **changes: Any) -> None:
        """Change the fields of a job, in memory while the disk is full."""
        with self._store.lock:
            job = self._stored(number)
            changes = {key: value for key, value in changes.items() if key != "startTime" or key not in job}
            if job and any(job.get(key) != value for key, value in changes.items()):
                self._store.keep(COLLECTION, number, job | changes | {"updateTime": record.now()})

    def _current(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return a job, which is FAILED when the server that ran it and the last process of the job have ended."""
        if job["state"] in _FINAL:
            return job
        number = job["name"].rpartition("/")[2]
        with self._store.lock:
            job = self._stored(number) or job
            if job["state"] in _FINAL or number in self._running or record.is_running(self._folder(number)):
                return job
            changes: dict[str, Any] = {"state": str(JobState.CANCELLED)}
            if job["state"] != JobState.CANCELLING:
                changes = {"state": str(JobState.FAILED), "error": rpc_error(errors.Status.ABORTED, _STOPPED)}
            self._update(number, **changes, endTime=record.now())
            return self._stored(number) or job

    def _viewed(self, job: dict[str, Any]) -> Viewed:
        """Return a job for lists; the index contains only those that have ended."""
        job = self._current(job)
        return Viewed(resource=job, is_sound=job["state"] in _FINAL)

    def _find(self, call: Call) -> dict[str, Any]:
        name = call.location.child(COLLECTION, call.resource_id)
        job = self._store.read(COLLECTION, call.resource_id)
        if job is None or job["name"] != name:
            raise not_found(name)
        return self._current(job)


def damaged_resource(call: Call, number: str, reason: str) -> dict[str, Any]:
    """Build the stand-in for a job whose record is damaged."""
    error = rpc_error(errors.Status.INTERNAL, f"its record is damaged ({reason}); delete it")
    job = {"name": call.location.child(COLLECTION, number), "displayName": number}
    return job | {"state": str(JobState.FAILED), "error": error}


def _check_record(job: dict[str, Any]) -> None:
    """Raise one of `UNUSABLE` when the record of a job is damaged."""
    JobState(job["state"])
    if not all(isinstance(job[name], str) for name in ("displayName", "createTime", "updateTime")):
        raise TypeError("a field is not a string")
    job["jobSpec"].keys(), job.get("labels", {}).keys(), job.get("error", {}).get("message", "").strip()


def _end_of(outcome: Outcome) -> dict[str, Any]:
    """Return the fields that change when a job ends."""
    changes: dict[str, Any] = {"state": str(outcome.state)}
    if outcome.state is JobState.FAILED:
        # The service reports a failing user program as an invalid argument.
        is_users = outcome.exit_code is not None
        status = errors.Status.INVALID_ARGUMENT if is_users else errors.Status.ABORTED
        changes["error"] = rpc_error(status, outcome.error)
    return changes


def _describe(changes: dict[str, Any]) -> str:
    """Format the error after a comma; empty when there is none."""
    return f", {changes['error']['message']}" if "error" in changes else ""
