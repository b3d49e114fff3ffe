"""The jobs that this process executes, each in a thread of its own."""

import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from localvertex.api.jobs.records import JobRecords, Resource, failed
from localvertex.api.rest.errors import ApiError, Status
from localvertex.errors import Cancelled, TaskFailed
from localvertex.jobs import JobState
from localvertex.processes.processes import Processes
from localvertex.store import record, run_folder
from localvertex.values import facts
from localvertex_base.lines import WriteLine

_GRACE_SECONDS = facts.number("grace.end")


class RunningJob:
    """A job while its thread runs.

    Args:
        number: Its id.
        records: Its record is one of them.
        hold: Held until the last process of the job has ended, even when this server is killed.
        log: Called with its messages.
    """

    def __init__(self, number: str, records: JobRecords, hold: IO[str], log: WriteLine) -> None:
        self.number, self._records, self._log = number, records, log
        self.name, self.folder = f"{records.collection}/{number}", records.folder(number)
        self.processes = Processes(grace_seconds=_GRACE_SECONDS, hold=hold.fileno())
        """Its processes; they are stopped when it is cancelled, and with the server."""
        self._ended = threading.Event()
        self._end: Resource = {}

    def begin(self) -> None:
        """Record that it runs, unless it has been cancelled."""
        with self._records.lock:
            if not self.processes.stopped.is_set():
                self.update(state=str(JobState.RUNNING), startTime=record.now())

    def update(self, **changes: Any) -> None:
        """Change fields of its record."""
        self._records.update(self.number, **changes)

    def report(self, text: str) -> None:
        """Log an event."""
        self._log(f"{self.name}: {text}")

    def warn(self, text: str) -> None:
        """Log a warning."""
        self.report(f"warning: {text}")

    def end(self, fields: Resource) -> None:
        """Note the fields with which it ended."""
        self._end = fields
        self._ended.set()

    def wait(self) -> Resource:
        """Wait for the end, and return the fields with which it ended."""
        self._ended.wait()
        return self._end


Work = Callable[[RunningJob], Resource]
"""Runs a job to its end, and returns its last fields, with its state; Cancelled when it was stopped."""


class JobThreads:
    """The running jobs of a kind.

    Args:
        records: Their records.
        log: Called with the start, the end and the warnings of each job.
    """

    def __init__(self, records: JobRecords, log: WriteLine) -> None:
        self._records, self._log = records, log
        self._running: dict[str, tuple[RunningJob, threading.Thread]] = {}
        self._is_closed = False

    def start(self, number: str, work: Work, write: Callable[[], None]) -> RunningJob:
        """Execute a job in its new folder, which is removed if the job cannot be started.

        Args:
            number: Its id.
            work: Runs it.
            write: Writes its first record.
        """
        folder = self._records.folder(number)
        folder.mkdir(parents=True)
        hold = run_folder.lock(folder)
        job = RunningJob(number, self._records, hold, self._log)
        thread = threading.Thread(target=self._execute, args=(job, work, hold), name=job.name)
        try:
            with self._records.lock:
                if self._is_closed:
                    raise ApiError(Status.UNAVAILABLE, "the server is being stopped")
                write()
                self._running[number] = job, thread
                thread.start()
        except BaseException:
            self._running.pop(number, None)
            hold.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return job

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
                self._running[number][0].processes.stop()

    def close(self) -> None:
        """Stop all jobs and wait for them; they become FAILED, because no client cancelled them."""
        with self._records.lock:
            self._is_closed = True
            running = dict(self._running)
            for job, _ in running.values():
                job.processes.stop()
        for _, thread in running.values():
            thread.join()

    def _execute(self, job: RunningJob, work: Work, hold: IO[str]) -> None:
        job.report(f"running, logs in {job.folder}")
        try:
            fields = work(job)
        except Cancelled:
            fields = {"state": str(JobState.CANCELLED)}
        except Exception as error:  # the server keeps running, whatever happened to the job
            of_users = Status.INVALID_ARGUMENT if isinstance(error, TaskFailed) else Status.INTERNAL
            fields = failed(error.status if isinstance(error, ApiError) else of_users, str(error))
        with self._records.lock:
            if fields["state"] == JobState.CANCELLED:
                fields |= self._records.stop_fields(self._records.read_stored(job.number))
            self._running.pop(job.number, None)
            hold.close()
            self._records.update(job.number, **fields, endTime=record.now())
        job.end(fields)
        reason = f", {fields['error']['message']}" if "error" in fields else ""
        job.report(f"{fields['state']}{reason}")
