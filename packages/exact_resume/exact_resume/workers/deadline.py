"""Waiting for other machines: reports which are missing, ends at a stop request, and gives up at the deadline."""

import time
from collections.abc import Callable, Sequence

from exact_resume.workers.signals import StopRequest
from exact_resume.workers.watchdog import EXIT_LOST_PEER

POLL_SECONDS = 0.2
"""A stop request waits for this time at most."""
SECONDS_BETWEEN_REPORTS = 30.0


class TimedOut(Exception):
    """Gave up waiting for the other workers; the process exits with `exit_code`."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


class Deadline:
    """The time limit of one wait for other machines."""

    def __init__(
        self,
        stop: StopRequest,
        timeout_seconds: float,
        report: Callable[[str], None],
        *,
        option: str = "peer_timeout_seconds",
    ) -> None:
        """Start to wait.

        Args:
            stop: Ends the wait.
            timeout_seconds: Longest time.
            report: Receives a line now and then, and one at the end.
            option: Option with which the user sets the time.
        """
        self._option = option
        self._stop, self._timeout_seconds, self._report = stop, timeout_seconds, report
        self._started = self._reported = time.monotonic()

    def check(self, missing: Sequence[str]) -> None:
        """Continue to wait for the named machines.

        Raises:
            TimedOut: A stop was requested, or the time is over.
        """
        now = time.monotonic()
        waited = now - self._started
        if self._stop.is_set:
            self._report(f"{self._stop.signal_name}: stopped while waiting for {', '.join(missing)}")
            raise TimedOut(self._stop.exit_code)
        if waited > self._timeout_seconds:
            self._report(
                f"gave up after {waited:.0f} s ({self._option}), still waiting for {', '.join(missing)}"
                f"; exiting with {EXIT_LOST_PEER}, safe to retry"
            )
            raise TimedOut(EXIT_LOST_PEER)
        if now - self._reported >= SECONDS_BETWEEN_REPORTS:
            self._reported = now
            self._report(f"waiting for {', '.join(missing)} for {waited:.0f} s")
