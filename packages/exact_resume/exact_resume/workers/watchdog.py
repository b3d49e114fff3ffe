"""Aborts a process that makes no progress, because a hanging machine costs as much as a working one."""

import faulthandler
import math
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from exact_resume.text import one_line

EXIT_LOST_PEER = 134
"""The exit code of SIGABRT, the only one that Vertex AI documents as retryable."""
_STARTUP_SECONDS = 3600.0


class Watchdog:
    """Expects a `beat` within the timeout; otherwise prints the stack of every thread and aborts with 134.

    The first beat may take an hour: data may have to be copied, and other machines may still be starting.
    """

    def __init__(self, timeout_seconds: float, *, report: Callable[[str], None] = lambda message: None) -> None:
        """Start watching.

        Args:
            timeout_seconds: Longest time between two beats; 0: do not watch.
            report: Called with one line before the process is aborted.
        """
        self._timeout_seconds, self.report = timeout_seconds, report
        self._last_beat = time.monotonic() + max(0.0, _STARTUP_SECONDS - timeout_seconds)
        self._closed = threading.Event()
        if timeout_seconds > 0:
            threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def beat(self) -> None:
        """Note that there is progress."""
        self._last_beat = time.monotonic()

    def pause(self) -> None:
        """Expect nothing until the next beat."""
        self._last_beat = math.inf

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(min(1.0, self._timeout_seconds / 4)):
            silent = time.monotonic() - self._last_beat
            if silent > self._timeout_seconds:
                self.report(
                    f"no progress for {silent:.0f} s, and the watchdog waits {self._timeout_seconds:g} s; aborting"
                )
                faulthandler.dump_traceback(all_threads=True)
                abort()


def leave(reason: str, log_event: Callable[..., None]) -> NoReturn:
    """Abort because a peer is lost; the event log has the reason."""
    log_event("notice", message=f"lost a peer worker ({reason}); exiting with {EXIT_LOST_PEER}, safe to retry")
    log_event("exit", code=EXIT_LOST_PEER)
    # TensorFlow's own threads may abort at any moment, so the event log comes first.
    for thread in threading.enumerate():
        # An almost finished checkpoint is worth a few of the seconds that Vertex AI leaves.
        if thread.name == "checkpoint-writer":
            thread.join(5.0)
    abort()


def leave_displaced(error: Exception) -> NoReturn:
    """Exit with 1, without writing to the event log, because another job has taken over the run.

    After an exit with 134, the service would restart this job, and the two jobs would displace each other for ever.
    """
    print(one_line(f"failed: {error}"), file=sys.stderr, flush=True)
    sys.stdout.flush()
    # sys.exit would wait: TensorFlow's shutdown for peers, and this process for a checkpoint that is being written.
    os._exit(1)


def abort() -> NoReturn:
    """Leave at once with SIGABRT (134), the one exit code that Vertex AI documents as retryable.

    Not through sys.exit, because TensorFlow's shutdown waits for peers that may be lost.
    """
    # A core file would contain the model and fill the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.flush()
    sys.stderr.flush()
    os.abort()
