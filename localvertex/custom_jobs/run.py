"""Runs a custom job: one process per replica, restarted by the service's rules until the job ends.

One loop in the caller's thread decides everything; other threads only report that a process has ended.
"""

import signal
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from uuid import uuid4

from localvertex import logs
from localvertex.custom_jobs.cluster import held_addresses
from localvertex.custom_jobs.environment import local_command, make_output_directory, replica_environment
from localvertex.custom_jobs.job import CustomJob
from localvertex.custom_jobs.replica_process import Exit, ReplicaProcess
from localvertex.custom_jobs.restart_rules import Decision, Restarts, Verdict
from localvertex.custom_jobs.status import JobState, Options, Outcome, Place, Status
from localvertex.errors import Cancelled
from localvertex.processes import Processes

POLL_SECONDS = 0.1
"""How long a wish to cancel, or the end of the timeout, may go unnoticed. The end of a process never does."""


def run(
    job: CustomJob,
    *,
    place: Place,
    processes: Processes,
    observe: Callable[[Status], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    cancel: threading.Event | None = None,
    options: Options | None = None,
) -> Outcome:
    """Runs a job to its end.

    Args:
        job: What `read` returned.
        place: Folders, and the project that replicas are told.
        processes: Holds the job's processes; stopping it cancels the job.
        observe: Is told every change, in the caller's thread.
        warn: Is told what differs from the service.
        cancel: Set from another thread, it cancels the job.
        options: Restart rule.

    Raises:
        TaskFailed: it could not be started.
    """
    make_output_directory(job.base_output_directory)
    place.folder.mkdir(parents=True, exist_ok=True)
    job_id = uuid4().hex
    if any(pool.is_reduction_server for pool in job.pools):
        warn("Reduction Server does not run here; workers reduce without it")
    # Left before the first process starts, which then takes its port.
    with held_addresses(job) as addresses:
        replicas = [
            ReplicaProcess(
                replica=replica,
                command=local_command(replica.pool.command),
                env=replica_environment(job, replica, addresses=addresses, project=place.project, job_id=job_id),
                folder=place.folder,
                processes=processes,
            )
            for replica in job.replicas
            if not replica.pool.is_reduction_server
        ]
    restarts = Restarts(scheduling=job.scheduling, rule=(options or Options()).restart_rule)
    return JobRun(job, replicas, restarts, place, observe, cancel or threading.Event()).execute()


class JobRun:
    """One job while it runs."""

    def __init__(
        self,
        job: CustomJob,
        replicas: list[ReplicaProcess],
        restarts: Restarts,
        place: Place,
        observe: Callable[[Status], None],
        cancel: threading.Event,
    ) -> None:
        self._job, self._replicas, self._restarts, self._place = job, replicas, restarts, place
        self._observe, self._cancel = observe, cancel
        self._exits: SimpleQueue[Exit] = SimpleQueue()
        self._state = JobState.PENDING
        self._num_restarts = 0
        self._outcome: Outcome | None = None

    def execute(self) -> Outcome:
        """Starts every replica and follows the job to its end."""
        deadline = time.monotonic() + self._job.scheduling.timeout_seconds
        self._state = JobState.RUNNING
        try:
            self._start(self._replicas)
            while self._outcome is None:
                self._next_exit()
                if self._cancel.is_set():
                    raise Cancelled
                if self._outcome is None and time.monotonic() >= deadline:
                    timeout = self._job.scheduling.timeout_seconds
                    self._end(JobState.FAILED, error=f"the job's timeout of {timeout:g} s is over")
        except Cancelled:
            self._end(JobState.CANCELLED, error="the job was cancelled")
        finally:
            # Also when we fail ourselves: no process is left.
            for each in self._replicas:
                each.stop()
        assert self._outcome is not None  # noqa: S101 - the loop ends by it
        return self._outcome

    @property
    def _status(self) -> Status:
        return Status(
            state=self._state,
            replicas=tuple(each.status for each in self._replicas),
            num_restarts=self._num_restarts,
            num_preemptions=self._restarts.num_preemptions,
        )

    def _say(self, text: str) -> None:
        logs.add(self._place.folder / LOG, text)

    def _start(self, replicas: list[ReplicaProcess]) -> None:
        for each in replicas:
            each.start(self._exits.put)
        self._observe(self._status)

    def _next_exit(self) -> None:
        try:
            event = self._exits.get(timeout=POLL_SECONDS)
        except Empty:
            return
        self._ended(event)
        if not event.replica.is_done:
            name, code = event.replica.name, event.code
            self._decided(event.replica, self._restarts.after_exit(name, code))
        elif event.replica.replica.is_primary:
            self._end(JobState.SUCCEEDED)
        else:
            self._observe(self._status)

    def _ended(self, event: Exit) -> None:
        event.replica.ended(event.code)
        self._say(f"{event.replica.name}: exit code {event.code}")

    def _decided(self, replica: ReplicaProcess, decision: Decision) -> None:
        """Does what the rules say about a replica that failed."""
        self._say(f"{replica.name}: {decision.reason}")
        if decision.verdict is Verdict.FAIL:
            code = replica.exit_code or 1
            words = logs.failure_text(code, replica.log)
            reason = "" if decision.is_permanent else f"{decision.reason}; "
            error = f"{replica.name}: {reason}{words}"
            return self._end(JobState.FAILED, error=error, exit_code=code, is_permanent=decision.is_permanent)
        self._num_restarts += 1
        if decision.verdict is Verdict.RESTART_REPLICA:
            return self._start([replica])
        # Nothing that the others could still do would be kept, and one of them may be frozen.
        self._kill(self._replicas)
        return self._start(self._replicas)

    def _kill(self, replicas: list[ReplicaProcess]) -> None:
        """Ends processes at once and waits until their ports are free again."""
        for each in replicas:
            each.signal(signal.SIGKILL)
        self._wait_for(replicas)

    def _wait_for(self, replicas: list[ReplicaProcess]) -> None:
        while any(each.is_running for each in replicas):
            self._ended(self._exits.get())

    def _end(
        self, state: JobState, *, error: str = "", exit_code: int | None = None, is_permanent: bool = False
    ) -> None:
        """Ends what still runs, gently, and then the job."""
        if any(each.is_running for each in self._replicas):
            self._state = JobState.CANCELLING if state is JobState.CANCELLED else self._state
            self._observe(self._status)
        for each in self._replicas:
            each.stop()
        self._wait_for(self._replicas)
        self._state = state
        self._say(f"{state}{f': {error}' if error else ''}")
        self._outcome = Outcome(status=self._status, error=error, exit_code=exit_code, is_permanent=is_permanent)
        self._observe(self._status)


LOG = "log.txt"
"""What the job itself has to say, in its folder; a pipeline's step has the same file."""
