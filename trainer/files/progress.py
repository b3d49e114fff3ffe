"""Progress of long work on standard error: a line every 10 s, the first after 10 s."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

_SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Progress of some work; rate and time left follow from the items that were not reused."""

    def __init__(
        self, activity: str, unit: str, total: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start the clock.

        Args:
            activity: Begins each line, such as `reading`.
            unit: Unit of the count, in the plural.
            total: Number of items; None if unknown.
            clock: Returns seconds.
        """
        self.total, self.num_done, self.num_known = total, 0, 0
        self._activity, self._unit, self._clock = activity, unit, clock
        self._start = clock()

    def advance(self, count: int = 1, *, num_known: int = 0) -> None:
        """Count finished items.

        Args:
            count: All finished items.
            num_known: Items that were reused and therefore cost no time.
        """
        self.num_done += count
        self.num_known += num_known

    @property
    def text(self) -> str:
        """All figures on one line."""
        is_sure = self.total is not None and self.num_done <= self.total
        count = f"{self.num_done:,}" + (f" of {self.total:,}" if is_sure else "")
        parts = [f"{self._activity}: {count} {self._unit}"]
        if self.num_known:
            parts.append(f"{self.num_known:,} reused")
        # The clock may go back, for example when a machine was suspended.
        seconds = self._clock() - self._start
        if seconds > 0 and (num_new := self.num_done - self.num_known) > 0:
            rate = num_new / seconds
            parts.append(f"{rate:,.0f} per second" if rate >= 10 else f"{rate:.2g} per second")
            if is_sure and self.total is not None:
                parts.append(f"{_duration((self.total - self.num_done) / rate)} left")
        return ", ".join(parts)


@contextlib.contextmanager
def progress_lines(activity: str, unit: str, total: int | None = None) -> Iterator[Progress]:
    """Yield progress that is printed until the block ends.

    Args:
        activity: Present participle, for example `reading`.
        unit: Unit of the count, in the plural.
        total: Number of items; None if unknown.
    """
    progress = Progress(activity, unit, total)
    ended = threading.Event()
    # A thread, because the work may wait for a bucket; a daemon, so the process does not wait for it at its end.
    thread = threading.Thread(target=_print, args=(progress, ended), name="progress", daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        ended.set()
        thread.join()


def _print(progress: Progress, ended: threading.Event) -> None:
    while not ended.wait(_SECONDS_BETWEEN_LINES):
        # A closed log must not fail the work.
        with contextlib.suppress(OSError, ValueError):
            # One call, so lines of other threads do not interleave.
            sys.stderr.write(f"{progress.text}\n")
            sys.stderr.flush()


def _duration(seconds: float) -> str:
    """Return seconds in a readable form: `45 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = int(min(seconds, 10**9) + 0.5)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
