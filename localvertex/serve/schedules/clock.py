"""The clock that schedules follow; it can run faster, to try a weekly schedule in minutes."""

import time
from datetime import UTC, datetime, timedelta


class Clock:
    """Real time, or time that passes `factor` times as fast from the server's start on."""

    def __init__(self, *, factor: float) -> None:
        self.factor = factor
        self._start, self._origin = datetime.now(UTC), time.monotonic()

    def now(self) -> datetime:
        """The present moment."""
        if self.factor == 1:
            return datetime.now(UTC)
        return self._start + timedelta(seconds=(time.monotonic() - self._origin) * self.factor)

    def begin_at(self, moment: datetime) -> None:
        """Goes on from a moment that an earlier, faster clock had reached."""
        if self.factor != 1 and moment > self.now():
            self._start, self._origin = moment, time.monotonic()

    def real_seconds_until(self, moment: datetime) -> float:
        """How long to wait for a moment."""
        return max(0.0, (moment - self.now()).total_seconds() / self.factor)
