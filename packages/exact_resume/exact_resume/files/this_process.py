"""The identity of a process on its machine, so that another process on that machine can prove that it has ended."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from exact_resume.files import linux

_ENDED = ("Z", "X")
"""States of a process that has ended but that its parent has not reaped (man 5 proc)."""


def describe() -> dict[str, Any]:
    """Return the identity of this process: host, pid and, on Linux, boot, namespace and start time."""
    # Its import takes 2 ms, which a program without a lease need not spend.
    import socket

    described: dict[str, Any] = {"host": socket.gethostname(), "pid": os.getpid()}
    if linux.is_used():
        with contextlib.suppress(OSError):
            _, started = linux.state(os.getpid())
            described |= {**linux.machine(), "started": started}
            described |= linux.hold_name()
    return described


def has_ended(described: Mapping[str, Any]) -> bool:
    """Return whether a process has provably ended; False if it ran elsewhere, or on another system than Linux."""
    pid, started = described.get("pid"), described.get("started")
    try:
        if not linux.is_used() or not isinstance(pid, int) or pid <= 0 or not started:
            return False
        here = linux.machine()
        if described.get("boot") != here["boot"]:
            return False
        if described.get("namespace") != here["namespace"]:
            return linux.is_name_free(str(described.get("network")), str(described.get("name")))
        os.kill(pid, 0)
        state, now_started = linux.state(pid)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        # The process belongs to another user, so its details are not readable.
        return False
    return state in _ENDED or now_started != started
