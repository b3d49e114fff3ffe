"""Fault injection: when the faults of a job are due, and what each does to its replicas."""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from localvertex.jobs.faults.faults import ALL, Action, Fault
from localvertex.jobs.faults.ledger import FaultLedger
from localvertex.jobs.faults.requests import Requests
from localvertex.jobs.goodput.event_files import EventFiles
from localvertex.jobs.job import PRIMARY
from localvertex.jobs.replica_process import ReplicaProcess
from localvertex.jobs.status import MISSED, EventKind
from localvertex.processes.network.metadata_server import MAINTENANCE_EVENT, PREEMPTED

_SIGNALS = {Action.SIGKILL: signal.SIGKILL, Action.SIGTERM: signal.SIGTERM, Action.SIGSTOP: signal.SIGSTOP}


Disturb = Callable[[Sequence[ReplicaProcess], float], list[Fault]]
"""Given the replicas and the seconds since the start of the job, returns the faults that happen now."""


class FaultClock:
    """The faults of one job that have not happened yet."""

    def __init__(self, faults: tuple[Fault, ...], events: EventFiles) -> None:
        self._events = events
        self._pending = list(faults)
        self._next_times = {fault: fault.every_seconds for fault in faults if fault.every_seconds is not None}

    def due(self, seconds: float) -> list[Fault]:
        """Return each fault that became due within `seconds` after the start of the job, once per occurrence."""
        due = []
        for fault in list(self._pending):
            if fault.every_seconds is not None:
                if seconds >= self._next_times[fault]:
                    self._next_times[fault] = seconds + fault.every_seconds
                    due.append(fault)
            elif self._is_due(fault, seconds):
                self._pending.remove(fault)
                due.append(fault)
        return due

    def _is_due(self, fault: Fault, seconds: float) -> bool:
        if fault.at_seconds is not None:
            return seconds >= fault.at_seconds
        # Parameter servers and evaluators train no steps; the primary's count for them.
        progress = self._events.progress(PRIMARY if fault.target == ALL else fault.target)
        if progress.num_steps == 0:
            progress = self._events.progress(PRIMARY)
        if fault.at_step is not None:
            return progress.step >= fault.at_step
        return progress.num_steps > 0 and progress.step * 100 >= (fault.at_percent or 0) * progress.num_steps


@dataclass(frozen=True, kw_only=True)
class _Departure:
    """Processes that get SIGKILL at the end of their grace time."""

    action: Action
    processes: dict[ReplicaProcess, int]
    """The number of each replica's process, counted from 1; later processes are not affected."""
    kills_at: float
    """Monotonic time in seconds."""

    @property
    def remaining(self) -> list[ReplicaProcess]:
        """Replicas whose process still runs."""
        return [each for each, number in self.processes.items() if each.is_running and each.num_starts == number]


class FaultInjector:
    """Carries out the faults of one job: signals, notices of the metadata server, lost machines."""

    def __init__(
        self,
        clock: FaultClock,
        requests: Requests,
        replicas: list[ReplicaProcess],
        ledger: FaultLedger,
        report: Callable[..., None],
        disturb: Disturb,
    ) -> None:
        self._clock, self._requests, self._replicas, self._disturb = clock, requests, replicas, disturb
        self._ledger, self._report = ledger, report
        self._start = time.monotonic()
        self._departures: list[_Departure] = []

    def carry_out(self) -> None:
        """Carry out the faults that are due."""
        now = time.monotonic()
        seconds = now - self._start
        asked = self._disturb(self._replicas, seconds)
        for fault in [*self._clock.due(seconds), *self._requests.new(seconds), *asked]:
            self._inflict(fault, now)
        for departure in self._departures:
            if now >= departure.kills_at:
                for each in departure.remaining:
                    each.signal(signal.SIGKILL)

    def is_preempted(self) -> bool:
        """Return whether machines are being preempted; the job then restarts, however its replicas exit."""
        return any(each.action is Action.PREEMPT for each in self._departures)

    def is_in_maintenance(self, replica: ReplicaProcess) -> bool:
        """Return whether the replica's current process ends with its machine."""
        return any(
            each.action is Action.MAINTENANCE and each.processes.get(replica) == replica.num_starts
            for each in self._departures
        )

    def take_preemption(self) -> ReplicaProcess | None:
        """Return one preempted replica once all processes of that preemption have ended; None before that."""
        gone = [each for each in self._departures if each.action is Action.PREEMPT and not each.remaining]
        if not gone:
            return None
        # All replicas restart now, so nothing else is due for their old processes.
        self._departures = []
        return next(iter(gone[0].processes))

    def _inflict(self, fault: Fault, now: float) -> None:
        targets = [each for each in self._replicas if fault.target in (ALL, each.name) and each.is_running]
        text = f"fault: {fault}" if targets else f"fault: {fault}: no process is running there"
        phase = "" if targets else MISSED
        self._report(text, EventKind.FAULT, replica=fault.target, action=fault.action, phase=phase)
        if not targets:
            self._ledger.miss(fault)
            return
        self._ledger.inject(fault)
        for each in targets:
            self._notify(each, fault.action)
        if fault.action not in (Action.SIGKILL, Action.SIGSTOP):
            processes = {each: each.num_starts for each in targets}
            kills_at = now + fault.grace_seconds
            self._departures.append(_Departure(action=fault.action, processes=processes, kills_at=kills_at))

    def _notify(self, replica: ReplicaProcess, action: Action) -> None:
        if action is Action.MAINTENANCE:
            replica.metadata.set(MAINTENANCE_EVENT, "TERMINATE_ON_HOST_MAINTENANCE")
            return
        if action is Action.PREEMPT:
            replica.metadata.set(PREEMPTED, "TRUE")
        # A Spot machine shuts down by ACPI; at best its containers then get SIGTERM.
        replica.signal(_SIGNALS.get(action, signal.SIGTERM))
