"""A custom job while it runs: one process per replica, restarted by the service's rules until the job ends.

One loop in the caller's thread makes all decisions; other threads only report that a process has ended.
"""

import math
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from uuid import uuid4

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex.errors import Cancelled
from localvertex.jobs.faults.faults import Fault
from localvertex.jobs.faults.injector import Disturb, FaultClock, FaultInjector
from localvertex.jobs.faults.ledger import FaultLedger
from localvertex.jobs.faults.requests import Requests
from localvertex.jobs.goodput.event_files import EventFiles
from localvertex.jobs.goodput.goodput import goodput
from localvertex.jobs.job import CustomJob
from localvertex.jobs.replica_process import Exit, ReplicaProcess
from localvertex.jobs.restart_rules import Decision, Restarts, Verdict
from localvertex.jobs.stalls import StallWatch
from localvertex.jobs.status import LOG, PERMANENT, EventKind, JobEvent, JobState, JobStatus, Outcome
from localvertex.processes import logs
from localvertex.processes.network.loopback import LoopbackPorts

_POLL_SECONDS = 0.05
"""How long a fault, a cancellation or the timeout may go unnoticed. The end of a process wakes the loop at once."""

_PROGRESS_SECONDS = 0.5
"""Interval between two reports of progress: each becomes a line in the journal of a run."""


class JobRun:
    """One job while it runs; call `execute` once."""

    def __init__(
        self,
        job: CustomJob,
        replicas: list[ReplicaProcess],
        *,
        events: EventFiles,
        faults: tuple[Fault, ...],
        ledger: FaultLedger,
        restarts: Restarts,
        folder: Path,
        observe: Callable[[JobStatus], None],
        report: WriteLine,
        cancel: threading.Event,
        disturb: Disturb,
    ) -> None:
        self._job, self._replicas, self._events, self._restarts = job, replicas, events, restarts
        self._log_file, self._observe, self._report = folder / LOG, observe, report
        self._cancel, self._id = cancel, uuid4().hex
        self._injector = FaultInjector(
            FaultClock(faults, events),
            Requests(job, folder, self._id, self._announce),
            replicas,
            ledger,
            self._announce,
            disturb,
        )
        # A single replica has no peers.
        ports = [int(each.address.rpartition(":")[2]) for each in replicas] if len(replicas) > 1 else []
        self._ports = LoopbackPorts(ports, self._announce)
        self._exits: SimpleQueue[Exit] = SimpleQueue()
        self._has_trained, self._observed_at = False, -math.inf
        self._stalls = StallWatch(replicas, events)
        self._state = JobState.PENDING
        self._num_restarts = 0
        self._noted: list[JobEvent] = []
        self._goodput: JsonObject = {}
        self._failed_replica = ""
        self._outcome: Outcome | None = None

    def execute(self) -> Outcome:
        """Start every replica and follow the job to its end."""
        timeout_seconds = self._job.scheduling.timeout_seconds
        deadline = time.monotonic() + timeout_seconds
        self._state = JobState.RUNNING
        try:
            self._start(self._replicas)
            while self._outcome is None:
                if self._cancel.is_set():
                    raise Cancelled
                if time.monotonic() >= deadline:
                    self._end(JobState.FAILED, error=f"the job exceeded its timeout of {timeout_seconds:g} s")
                else:
                    self._follow()
        except Cancelled:
            self._end(JobState.CANCELLED, error="the job was cancelled")
        finally:
            # No process may be left, even after a defect in this loop.
            for each in self._replicas:
                each.stop()
        if self._outcome is None:
            raise RuntimeError("the job has ended without an outcome")
        return self._outcome

    @property
    def _status(self) -> JobStatus:
        return JobStatus(
            state=self._state,
            replicas=tuple(each.status(self._id, self._events) for each in self._replicas),
            num_restarts=self._num_restarts,
            num_preemptions=self._restarts.num_preemptions,
            events=tuple(self._noted),
            failed_replica=self._failed_replica,
            stalled=self._stalls.sentence if self._state is JobState.RUNNING else "",
            goodput=self._goodput,
        )

    def _log(self, kind: EventKind, text: str, **fields: str) -> None:
        state = fields.get("phase") if kind is EventKind.STATE else ""
        with suppress(OSError):  # a full disk does not end the job
            logs.add(self._log_file, ": ".join(filter(None, (state, text))))
        self._noted.append(JobEvent(kind=kind, text=text, **fields))

    def _announce(self, text: str, kind: EventKind = EventKind.NOTE, **fields: str) -> None:
        self._log(kind, text, **fields)
        self._report(text)

    def _start(self, replicas: list[ReplicaProcess]) -> None:
        for each in replicas:
            each.start(self._exits.put)
        self._observe(self._status)

    def _follow(self) -> None:
        """Wait up to POLL_SECONDS for the end of a process and handle it, or else do what is due."""
        try:
            ended = self._exits.get(timeout=_POLL_SECONDS)
        except Empty:
            num_events, stalled = len(self._noted), self._stalls.sentence
            self._has_trained |= self._events.poll()
            self._stalls.check()
            if self._stalls.sentence and not stalled:
                self._announce(self._stalls.sentence, EventKind.STALL)
            self._injector.carry_out()
            self._ports.confine()
            is_due = time.monotonic() - self._observed_at >= _PROGRESS_SECONDS
            is_new = len(self._noted) > num_events or self._stalls.sentence != stalled
            if is_new or (self._has_trained and is_due):
                self._has_trained, self._observed_at = False, time.monotonic()
                self._observe(self._status)
        else:
            if self._cancel.is_set():
                # The caller that cancels a job may also stop its processes, which is not a failure.
                self._handle_end(ended)
                raise Cancelled
            self._accept(ended)
        if self._outcome is None and (replica := self._injector.take_preemption()):
            self._follow_up(replica, self._restarts.after_preemption(), reason="")

    def _accept(self, ended: Exit) -> None:
        """Handle the end of a process."""
        self._handle_end(ended)
        replica = ended.replica
        if replica.is_done:
            if replica.replica.is_primary:
                self._end(JobState.SUCCEEDED)
            else:
                self._observe(self._status)
        elif self._injector.is_preempted():
            # The peers of a preempted machine fail too; only the preemption counts.
            self._observe(self._status)
        else:
            in_maintenance = self._injector.is_in_maintenance(replica)
            rules = self._restarts
            decision = rules.after_maintenance() if in_maintenance else rules.after_exit(replica.name, ended.code)
            self._follow_up(replica, decision, reason=logs.failure_text(ended.code, replica.log))

    def _handle_end(self, ended: Exit) -> None:
        ended.replica.note_end(ended.code)
        self._stalls.sentence = ""
        name = ended.replica.name
        self._log(EventKind.EXIT, f"{name}: exit code {ended.code}", replica=name)

    def _follow_up(self, replica: ReplicaProcess, decision: Decision, *, reason: str) -> None:
        """Apply the decision about a replica that failed."""
        text, phase = f"{replica.name}: {decision.reason}", "" if decision.adds_to_exit_code else PERMANENT
        self._log(EventKind.DECISION, text, replica=replica.name, action=decision.verdict, phase=phase)
        if decision.verdict is Verdict.FAIL:
            # Reported once, as the job's error.
            reasons = [text for text in (decision.reason if decision.adds_to_exit_code else "", reason) if text]
            self._failed_replica, error = replica.name, f"{replica.name}: {'; '.join(reasons)}"
            self._end(JobState.FAILED, error, exit_code=replica.exit_code, is_permanent=decision.is_permanent)
            return
        self._report(f"{replica.name}: {f'{reason}; ' if reason else ''}{decision.reason}")
        self._num_restarts += 1
        if decision.verdict is Verdict.RESTART_JOB:
            # At once, because the others' work would be lost anyway, and one of them may be frozen.
            for each in self._replicas:
                each.signal(signal.SIGKILL)
            self._wait_for_all()
        self._start(self._replicas if decision.verdict is Verdict.RESTART_JOB else [replica])

    def _wait_for_all(self) -> None:
        """Wait until every process has ended and its port is free again."""
        while any(each.is_running for each in self._replicas):
            self._handle_end(self._exits.get())

    def _end(
        self, state: JobState, error: str = "", *, exit_code: int | None = None, is_permanent: bool = False
    ) -> None:
        """Stop what still runs, with the grace time, and then end the job."""
        if state is JobState.CANCELLED:
            self._state = JobState.CANCELLING
            self._observe(self._status)
        for each in self._replicas:
            each.stop()
        self._wait_for_all()
        self._events.poll()
        self._state = state
        self._log(EventKind.STATE, error, phase=state)
        if all(each.spans for each in self._replicas):
            spans = {each.name: each.spans for each in self._replicas}
            self._goodput = goodput(spans, self._events, num_failures=self._num_restarts, end=time.time())
        self._outcome = Outcome(status=self._status, error=error, exit_code=exit_code, is_permanent=is_permanent)
        self._observe(self._status)
