"""Carries out the faults of a job: signals to replicas, notices of their machines, machines that go away."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from localvertex.custom_jobs.faults.clock import FaultClock
from localvertex.custom_jobs.faults.faults import ALL, Action, Fault
from localvertex.custom_jobs.metadata_server import MAINTENANCE_EVENT, PREEMPTED
from localvertex.custom_jobs.replica_process import ReplicaProcess

SIGNALS = {Action.SIGKILL: signal.SIGKILL, Action.SIGTERM: signal.SIGTERM, Action.SIGSTOP: signal.SIGSTOP}


@dataclass(frozen=True, kw_only=True)
class Departure:
    """Processes that get SIGKILL when their grace time is over."""

    action: Action
    processes: dict[ReplicaProcess, int]
    """Which process of each replica, counted from 1: a later one stays."""
    leaves_at: float
    """Monotonic time."""

    @property
    def remaining(self) -> list[ReplicaProcess]:
        """Those that still run."""
        return [each for each, number in self.processes.items() if each.is_running and each.num_starts == number]


class Disturbances:
    """What goes wrong in one job."""

    def __init__(self, clock: FaultClock, replicas: list[ReplicaProcess], tell: Callable[[str], None]) -> None:
        self._clock, self._replicas, self._tell = clock, replicas, tell
        self._start = time.monotonic()
        self._departures: list[Departure] = []

    def carry_out(self) -> None:
        """Does what is due."""
        now = time.monotonic()
        for fault in self._clock.due(now - self._start):
            self._inflict(fault, now)
        for departure in self._departures:
            if now >= departure.leaves_at:
                for each in departure.remaining:
                    each.signal(signal.SIGKILL)

    def is_preempted(self) -> bool:
        """Whether machines of the job are being taken away; the job will start anew, whatever its replicas do."""
        return any(each.action is Action.PREEMPT for each in self._departures)

    def is_in_maintenance(self, replica: ReplicaProcess) -> bool:
        """Whether the present process of the replica ends with its machine."""
        return any(
            each.action is Action.MAINTENANCE and each.processes.get(replica) == replica.num_starts
            for each in self._departures
        )

    def take_preemption(self) -> ReplicaProcess | None:
        """A replica whose machine has gone, once all that were to go have; None before that."""
        gone = [each for each in self._departures if each.action is Action.PREEMPT and not each.remaining]
        if not gone:
            return None
        # All restart now, so what was still to come for these processes is over.
        self._departures = []
        return next(iter(gone[0].processes))

    def _inflict(self, fault: Fault, now: float) -> None:
        targets = [each for each in self._replicas if fault.target in (ALL, each.name) and each.is_running]
        self._tell(f"fault: {fault}" if targets else f"fault: {fault}: nothing runs there")
        if not targets:
            return
        for each in targets:
            self._notify(each, fault.action)
        if fault.action not in (Action.SIGKILL, Action.SIGSTOP):
            processes = {each: each.num_starts for each in targets}
            leaves_at = now + fault.grace_seconds
            self._departures.append(Departure(action=fault.action, processes=processes, leaves_at=leaves_at))

    def _notify(self, replica: ReplicaProcess, action: Action) -> None:
        if action is Action.MAINTENANCE:
            replica.metadata.set(MAINTENANCE_EVENT, "TERMINATE_ON_HOST_MAINTENANCE")
            return
        if action is Action.PREEMPT:
            replica.metadata.set(PREEMPTED, "TRUE")
        # A Spot machine shuts down by ACPI; that the containers get SIGTERM then is what can be hoped for.
        replica.signal(SIGNALS.get(action, signal.SIGTERM))
