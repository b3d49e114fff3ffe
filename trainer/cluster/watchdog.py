"""Ends a process that makes no progress: a machine that hangs costs as much as one that works."""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

STARTING_SECONDS = 3600.0


class Watchdog:
    """Expects `beat` at least every so many seconds; else it prints where every thread is and leaves with 134.

    Up to the first beat it waits for an hour: data may have to be copied, and other machines may still be starting.
    """

    def __init__(self, timeout_seconds: float, *, tell: Callable[[str], None] = lambda message: None) -> None:
        self._timeout_seconds, self.tell = timeout_seconds, tell
        self._last_beat = time.monotonic() + max(0.0, STARTING_SECONDS - timeout_seconds)
        self._closed = threading.Event()
        if timeout_seconds > 0:
            threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def beat(self) -> None:
        """There is progress."""
        self._last_beat = time.monotonic()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(min(1.0, self._timeout_seconds / 4)):
            silent = time.monotonic() - self._last_beat
            if silent > self._timeout_seconds:
                self.tell(f"no progress for {silent:.0f} s (--watchdog-seconds={self._timeout_seconds:g}); aborting")
                faulthandler.dump_traceback(all_threads=True)
                abort()


def abort() -> NoReturn:
    """Leave at once with SIGABRT (134): the one code that the service documents as worth a restart.

    Not through sys.exit: TensorFlow's shutdown waits for peers that may be gone.
    """
    # A core file of a process with a model on it would fill the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.flush()
    sys.stderr.flush()
    os.abort()
