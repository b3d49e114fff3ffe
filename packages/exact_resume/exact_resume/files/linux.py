"""Functions that only Linux offers, and their substitutes elsewhere.

| function | on Linux | elsewhere |
|---|---|---|
| `machine`, `state` | prove that the holder of a lease has ended | another job watches the heartbeat first |
| `hold_name`, `is_name_free` | the same where processes have ids of their own | the same |
| `product_name` | recognises Compute Engine, which sends notices | notices need GCE_METADATA_HOST |
| `end_with_parent` | a wrapped command ends with its guard | it outlives a guard that is killed |
| `adopt_orphans`, `descendants` | all its processes end with it | those that left its session do not |
| `is_written` | a file that became smaller counts once it is closed | once the command has ended with 0 |

EXACT_RESUME_PORTABLE=1 makes this package behave on Linux as elsewhere.
"""

import contextlib
import ctypes
import errno
import os
import pathlib
import signal
import sys
from typing import Any

_PRODUCT_NAME = "/sys/class/dmi/id/product_name"
"""Readable even inside containers."""
_held: list[Any] = []
"""The socket of this process's name."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""From linux/prctl.h."""


def is_used() -> bool:
    """Return whether this is Linux, and its own calls are not switched off."""
    return sys.platform == "linux" and not os.environ.get("EXACT_RESUME_PORTABLE")


def machine() -> dict[str, str]:
    """Return the boot and the namespace in which process ids are comparable; a container has its own namespace.

    Raises:
        OSError: The system hides them.
    """
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {"boot": boot, "namespace": os.readlink("/proc/self/ns/pid")}


def hold_name() -> dict[str, str]:
    """Hold a name in this network namespace until this process ends, and return the name and the namespace.

    Processes with different process ids for each other, as behind the mask of localvertex, prove by it that one has
    ended.

    Raises:
        OSError: The system does not permit it.
    """
    import socket

    if not _held:
        holder = socket.socket(socket.AF_UNIX)
        holder.bind(f"\0exact-resume-{os.urandom(16).hex()}")
        holder.listen(1)
        _held.append(holder)
    return {"network": os.readlink("/proc/self/ns/net"), "name": _held[0].getsockname()[1:].decode()}


def is_name_free(network: str, name: str) -> bool:
    """Return whether no process holds a name; False if it is of another network namespace.

    Raises:
        OSError: It is not known.
    """
    import socket

    if os.readlink("/proc/self/ns/net") != network:
        return False
    with socket.socket(socket.AF_UNIX) as client:
        # A holder that is frozen does not answer.
        client.setblocking(False)
        return client.connect_ex(f"\0{name}") == errno.ECONNREFUSED


def state(pid: int) -> tuple[str, str]:
    """Return a process's state and start time, which follow its name; only the last bracket ends a name.

    Raises:
        OSError: It has ended, or belongs to another user.
    """
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], fields[19]


def product_name() -> str:
    """Return the firmware's name for this machine; empty if it is not known."""
    try:
        return pathlib.Path(_PRODUCT_NAME if is_used() else os.devnull).read_text().strip()
    except OSError:
        return ""


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parents end."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if is_used():
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants(parent: int) -> list[int]:
    """Return the process ids of all descendants, including those in other sessions; empty elsewhere."""
    try:
        path = f"/proc/{parent}/task/{parent}/children" if is_used() else os.devnull
        children = list(map(int, pathlib.Path(path).read_text().split()))
    except OSError:  # it has ended
        return []
    return [pid for child in children for pid in (child, *descendants(child))]


def is_written(path: pathlib.Path, parent: int) -> bool:
    """Return whether a descendant has a file open for writing; elsewhere it may have."""
    for entry in (each for pid in descendants(parent) for each in _entries(pathlib.Path(f"/proc/{pid}/fd"))):
        # It may have ended, or closed the file.
        with contextlib.suppress(OSError):
            if entry.samefile(path):
                flags = (entry.parents[1] / "fdinfo" / entry.name).read_text().partition("flags:")[2].split()[0]
                if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
                    return True
    return not is_used()


def _entries(folder: pathlib.Path) -> list[pathlib.Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
