"""The identity of a process on its machine, so that another process on that machine can prove that it has ended."""

import contextlib
import os
import pathlib
import socket
from collections.abc import Mapping
from typing import Any

_BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = "/proc/self/ns/pid"
"""Process ids are comparable only in one namespace; a container has its own. Only Linux has these files."""
_ENDED = ("Z", "X")
"""States of a process that has ended but that its parent has not reaped (man 5 proc)."""


def describe() -> dict[str, Any]:
    """Return what identifies this process: host, pid and, on Linux, boot, namespace and start time."""
    described: dict[str, Any] = {"host": socket.gethostname(), "pid": os.getpid()}
    with contextlib.suppress(OSError):
        _, started = _state(os.getpid())
        described |= {**_machine(), "started": started}
    return described


def has_ended(described: Mapping[str, Any]) -> bool:
    """Return whether a process has provably ended; False if it ran on another machine or in a container."""
    pid, started = described.get("pid"), described.get("started")
    try:
        if not isinstance(pid, int) or pid <= 0 or not started:
            return False
        if any(described.get(name) != value for name, value in _machine().items()):
            return False
        os.kill(pid, 0)
        state, now_started = _state(pid)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        # The process belongs to another user, so its details are not readable.
        return False
    return state in _ENDED or now_started != started


def _machine() -> dict[str, str]:
    return {"boot": _BOOT_ID.read_text().strip(), "namespace": os.readlink(_NAMESPACE)}


def _state(pid: int) -> tuple[str, str]:
    """Return a process's state and start time, which follow its name; only the last bracket ends a name."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], fields[19]
