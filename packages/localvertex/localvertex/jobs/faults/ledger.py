"""The injected faults of a run. Every custom job of a run gets each fault; injecting it in one job is enough."""

import threading
from collections.abc import Iterable

from localvertex.jobs.faults.faults import Fault

_NO_JOB = "no custom job was started"
_JOB_ENDED = "the custom job ended before it was due"
_NO_PROCESS = "no process was running there when it was due"


class FaultLedger:
    """Collects the outcomes of the faults; any thread may call it."""

    def __init__(self, given: Iterable[Fault] = ()) -> None:
        self._lock = threading.Lock()
        self._injected: set[Fault] = set()
        self._unused = dict.fromkeys(given, _NO_JOB)

    def plan(self, faults: Iterable[Fault]) -> None:
        """Note that a custom job with these faults has started."""
        with self._lock:
            for fault in faults:
                if fault not in self._injected and self._unused.get(fault) != _NO_PROCESS:
                    self._unused[fault] = _JOB_ENDED

    def inject(self, fault: Fault) -> None:
        """Note that a fault happened."""
        with self._lock:
            self._injected.add(fault)
            self._unused.pop(fault, None)

    def miss(self, fault: Fault) -> None:
        """Note that a fault was due while no process was running there."""
        with self._lock:
            if fault not in self._injected:
                self._unused[fault] = _NO_PROCESS

    @property
    def unused(self) -> list[str]:
        """The faults that did not happen, as sentences."""
        with self._lock:
            return [f"fault {fault} did not happen: {reason}" for fault, reason in self._unused.items()]
