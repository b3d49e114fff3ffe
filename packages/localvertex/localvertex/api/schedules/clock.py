"""The clock that schedules follow, faster than real time on request, and the thread that it wakes up."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from localvertex._base.lines import WriteLine

_LONGEST_WAIT_SECONDS = 60.0
"""The machine may sleep, or its clock may be set, so that the next instant comes sooner than computed."""

_MAX_LATE_SECONDS = 10.0
"""Real time: a machine that sleeps, or a process that is stopped, wakes up later than this after it should."""

RETRY_SECONDS = 2.0
"""Real time after which a run that could not be started is tried again."""


class Clock:
    """Real time, or time that passes `factor` times as fast since the server's start."""

    def __init__(self, *, factor: float) -> None:
        self.factor = factor
        self._start, self._origin = datetime.now(UTC), time.monotonic()

    def now(self) -> datetime:
        """Return the current time."""
        if self.factor == 1:
            return datetime.now(UTC)
        return self._start + timedelta(seconds=(time.monotonic() - self._origin) * self.factor)

    def begin_at(self, moment: datetime) -> None:
        """Continue from a time that an earlier, faster clock had reached."""
        if self.factor != 1 and moment > self.now():
            self._start, self._origin = moment, time.monotonic()

    def after_real_seconds(self, seconds: float) -> datetime:
        """Return the time of this clock after some real seconds."""
        return self.now() + timedelta(seconds=seconds * self.factor)

    def real_seconds_until(self, moment: datetime) -> float:
        """Return how many real seconds remain until a time of this clock."""
        return max(0.0, (moment - self.now()).total_seconds() / self.factor)


class Waker:
    """A thread that calls `fire_due` at each instant of a schedule, and whenever `wake` is called.

    Args:
        clock: The clock of the schedules.
        fire_due: Starts the runs that are due; returns the next instant, None when there is none.
        skip_missed: Called before `fire_due` when the machine has slept.
        log: Called with what `fire_due` raised; it is called again after RETRY_SECONDS.
    """

    def __init__(
        self,
        clock: Clock,
        fire_due: Callable[[], datetime | None],
        skip_missed: Callable[[], None],
        log: WriteLine,
    ) -> None:
        self._clock, self._fire_due, self._skip_missed, self._log = clock, fire_due, skip_missed, log
        self._changed = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Make the thread check again which schedule is due next."""
        self._changed.set()

    def stop(self) -> None:
        """End the thread; nothing fires after this returns."""
        self._is_stopping = True
        self._changed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopping:
            self._changed.clear()
            try:
                moment = self._fire_due()
                wait = _LONGEST_WAIT_SECONDS if moment is None else self._clock.real_seconds_until(moment)
            except Exception as error:  # schedules are followed as long as the server runs
                self._log(f"schedules: {type(error).__name__}: {error}; trying again")
                wait = RETRY_SECONDS
            # The time of day, because other clocks may stand still while the machine sleeps.
            wait, began = min(wait, _LONGEST_WAIT_SECONDS), time.time()
            self._changed.wait(wait)
            if time.time() - began > wait + _MAX_LATE_SECONDS:
                self._skip_missed()
