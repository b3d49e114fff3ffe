"""Tells when faults are due."""

from localvertex.custom_jobs.faults.faults import ALL, Fault
from localvertex.custom_jobs.goodput.event_files import EventFiles
from localvertex.custom_jobs.job import PRIMARY


class FaultClock:
    """The faults of one job that are still to come."""

    def __init__(self, faults: tuple[Fault, ...], events: EventFiles) -> None:
        self._events = events
        self._pending = list(faults)
        self._next_times = {fault: fault.every_seconds for fault in faults if fault.every_seconds is not None}

    def due(self, seconds: float) -> list[Fault]:
        """Faults whose time has come, `seconds` after the start of the job; each only once, repeated ones again."""
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

    @property
    def never_due(self) -> list[Fault]:
        """What has not happened, repeated faults left out."""
        return [fault for fault in self._pending if fault.every_seconds is None]

    def _is_due(self, fault: Fault, seconds: float) -> bool:
        if fault.at_seconds is not None:
            return seconds >= fault.at_seconds
        # Parameter servers and evaluators train no steps; the primary's count for them.
        step, num_steps = self._events.progress(PRIMARY if fault.target == ALL else fault.target)
        if num_steps == 0:
            step, num_steps = self._events.progress(PRIMARY)
        if fault.at_step is not None:
            return step >= fault.at_step
        return num_steps > 0 and step * 100 >= (fault.at_percent or 0) * num_steps
