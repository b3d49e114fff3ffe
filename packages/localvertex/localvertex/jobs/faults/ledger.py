"""The injected faults of a run. Every custom job of a run gets each fault; injecting it in one job is enough."""

import threading
from collections.abc import Iterable

from localvertex.jobs.faults.faults import Fault
from localvertex.jobs.faults.shortages import Shortage, Shortages

_NO_JOB = "no custom job was started"
_JOB_ENDED = "the custom job ended before it was due"
_NO_PROCESS = "no process was running there when it was due"


class FaultLedger:
    """Collects the outcomes of the faults; any thread may call it.

    Args:
        given: The faults that the user has given.
        shortages: The shortages, if several ledgers share them.
    """

    def __init__(self, given: Iterable[Fault | Shortage] = (), shortages: Shortages | None = None) -> None:
        given = tuple(given)
        self._lock = threading.Lock()
        self._injected: set[Fault] = set()
        self._unused = dict.fromkeys((each for each in given if isinstance(each, Fault)), _NO_JOB)
        self.shortages = shortages or Shortages(each for each in given if isinstance(each, Shortage))

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

    def left(self, faults: Iterable[Fault]) -> tuple[Fault, ...]:
        """Return the faults that may happen in a further job: repeated ones, and those that have not happened."""
        with self._lock:
            return tuple(each for each in faults if each.every_seconds is not None or each not in self._injected)

    @property
    def unused(self) -> list[str]:
        """The faults that did not happen, as sentences."""
        with self._lock:
            found = [f"fault {fault} did not happen: {reason}" for fault, reason in self._unused.items()]
        return found + self.shortages.unused


class StepLedger(FaultLedger):
    """The faults of a step whose jobs follow one another, as parts of one training.

    Args:
        run: The ledger of its run.
    """

    def __init__(self, run: FaultLedger) -> None:
        super().__init__(shortages=run.shortages)
        self._run = run

    def plan(self, faults: Iterable[Fault]) -> None:
        """Note that a custom job with these faults has started."""
        self._run.plan(faults)

    def inject(self, fault: Fault) -> None:
        """Note that a fault happened."""
        super().inject(fault)
        self._run.inject(fault)

    def miss(self, fault: Fault) -> None:
        """Note that a fault was due while no process was running there."""
        self._run.miss(fault)
