"""The custom jobs that this process executes, each in a thread of its own."""

import shutil
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from typing import IO, Any

from localvertex.api.custom_jobs.records import COLLECTION, JobRecords, stop_fields
from localvertex.api.rest import errors
from localvertex.api.rest.errors import rpc_error
from localvertex.api.steps.reach import Reach
from localvertex.containers.serving.machine import Machine
from localvertex.credentials.isolation import IsolatedCredentials, NoCredentials
from localvertex.errors import TaskFailed
from localvertex.jobs import CustomJob, FaultLedger, JobState, JobStatus, Outcome, Workspace, run_job
from localvertex.jobs.status import StatusFile
from localvertex.processes.processes import Processes
from localvertex.runner.engine import Options
from localvertex.store import record, run_folder
from localvertex.values import facts
from localvertex_base.lines import WriteLine

_GRACE_SECONDS = facts.number("grace.end")


class JobThreads:
    """The running jobs.

    Args:
        records: Their records.
        log: Called with the start, the end and the warnings of each job.
        options: Those of the server.
    """

    def __init__(self, records: JobRecords, log: WriteLine, options: Options) -> None:
        self._records, self._log, self._options = records, log, options
        self._running: dict[str, tuple[threading.Event, threading.Thread]] = {}

    def start(self, number: str, job: CustomJob, workspace: Workspace, write: Callable[[], None]) -> None:
        """Execute a job in its new folder, which is removed if the job cannot be started.

        Args:
            number: Its id.
            job: The job to run.
            workspace: Its folders.
            write: Writes its first record.
        """
        cancel = threading.Event()
        workspace.folder.mkdir(parents=True)
        # Held until the last process of the job has ended, even when this server is killed.
        hold = run_folder.lock(workspace.folder)
        arguments = number, job, workspace, cancel, hold
        thread = threading.Thread(target=self._execute, args=arguments, name=f"custom job {number}")
        try:
            with self._records.lock:
                write()
                self._running[number] = cancel, thread
                thread.start()
        except BaseException:
            self._running.pop(number, None)
            hold.close()
            shutil.rmtree(workspace.folder, ignore_errors=True)
            raise

    def __contains__(self, number: object) -> bool:
        """Return whether this process executes a job."""
        return number in self._running

    def cancel(self, number: str) -> None:
        """Ask a job to stop; one that has ended is unchanged."""
        with self._records.lock:
            if number in self._running:
                with suppress(OSError):
                    self._records.mark(number).touch()
                self._records.update(number, state=str(JobState.CANCELLING))
                self._running[number][0].set()

    def close(self) -> None:
        """Stop all jobs and wait for them; they become FAILED, because no client cancelled them."""
        with self._records.lock:
            running = dict(self._running)
            for cancel, _ in running.values():
                cancel.set()
        for _, thread in running.values():
            thread.join()

    def warn(self, number: str, text: str) -> None:
        """Log a warning about a job."""
        self._log(f"{COLLECTION}/{number}: warning: {text}")

    def _execute(
        self, number: str, job: CustomJob, workspace: Workspace, cancel: threading.Event, hold: IO[str]
    ) -> None:
        self._log(f"{COLLECTION}/{number}: running, logs in {workspace.folder}")
        try:
            changes = _end_of(self._outcome(number, job, workspace, cancel, hold))
        except Exception as error:  # the server keeps running, whatever happened to the job
            status = errors.Status.INVALID_ARGUMENT if isinstance(error, TaskFailed) else errors.Status.INTERNAL
            changes = {"state": str(JobState.FAILED), "error": rpc_error(status, str(error))}
        with self._records.lock:
            if changes["state"] == JobState.CANCELLED:
                changes = stop_fields(self._records.read_stored(number))
            self._running.pop(number, None)
            hold.close()
            self._records.update(number, **changes, endTime=record.now())
        reason = f", {changes['error']['message']}" if "error" in changes else ""
        self._log(f"{COLLECTION}/{number}: {changes['state']}{reason}")

    def _outcome(
        self, number: str, job: CustomJob, workspace: Workspace, cancel: threading.Event, hold: IO[str]
    ) -> Outcome:
        """Run the processes of a job."""

        def observe(status: JobStatus) -> None:
            if status.state is JobState.RUNNING:
                with self._records.lock:
                    if not cancel.is_set():
                        self._records.update(number, state=str(status.state), startTime=record.now())
            status_file.write(status)

        def warn(text: str) -> None:
            self.warn(number, text)

        ledger = FaultLedger(self._options.faults)
        processes = Processes(grace_seconds=_GRACE_SECONDS, hold=hold.fileno())
        with closing(NoCredentials()) as credentials, self._endpoint(processes, credentials, warn):
            status_file = StatusFile(workspace.folder, credentials.secrets.remove)
            outcome = run_job(
                job,
                workspace=workspace,
                processes=processes,
                credentials=credentials,
                containers=self._options.container_choice,
                observe=observe,
                warn=warn,
                report=lambda text: self._log(f"{COLLECTION}/{number}: {text}"),
                cancel=cancel,
                injected=self._options.faults,
                ledger=ledger,
            )
        for text in ledger.unused:
            warn(text)
        return outcome

    def _endpoint(
        self, processes: Processes, credentials: IsolatedCredentials, warn: WriteLine
    ) -> AbstractContextManager[object]:
        """Return the endpoint that the replicas of a job find."""
        machine = Machine(
            work_dir=self._records.work_dir,
            processes=processes,
            credentials=credentials,
            choice=self._options.container_choice,
            command_prefixes=self._options.command_prefixes,
        )
        return (self._options.server or Reach()).open_endpoint(machine, warn)


def _end_of(outcome: Outcome) -> dict[str, Any]:
    """Return the fields that change when a job ends."""
    changes: dict[str, Any] = {"state": str(outcome.state)}
    if outcome.state is JobState.FAILED:
        # The service reports a failing user program as an invalid argument.
        is_users = outcome.exit_code is not None
        status = errors.Status.INVALID_ARGUMENT if is_users else errors.Status.ABORTED
        changes["error"] = rpc_error(status, outcome.error)
    return changes
