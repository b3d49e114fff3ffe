"""The thread that makes schedules fire."""

import threading

from localvertex.serve.schedules.schedules import Schedules

LONGEST_WAIT_SECONDS = 60.0
"""The machine may sleep or its clock be set; then the next instant is nearer than was thought."""


class ScheduleClock:
    """Wakes up for each instant, for each run that ends, and for each change of a schedule."""

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._schedules.begin()
        self._thread.start()

    def stop(self) -> None:
        """Ends; nothing fires any more when it returns."""
        self._is_stopping = True
        self._schedules.changed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopping:
            self._schedules.changed.clear()
            moment = self._schedules.fire_due()
            wait = LONGEST_WAIT_SECONDS
            if moment is not None:
                wait = min(wait, self._schedules.real_seconds_until(moment))
            self._schedules.changed.wait(wait)
