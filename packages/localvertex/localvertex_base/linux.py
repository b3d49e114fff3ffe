"""All that only Linux offers; LOCALVERTEX_PORTABLE=1 makes these packages behave there as on any other system.

| function | on Linux | elsewhere |
|---|---|---|
| `end_with_parent` | a command ends with its supervisor | it outlives a supervisor that is killed |
| `root_of` | `prove` fills a small disk | it does not judge a full one |
| `adopt_orphans`, `descendants` | a step's processes end with it | those that left its process group do not |
| `is_frozen` | a job without progress names its frozen replicas, after 2 minutes | it names none, after 10 minutes |
| `tcp_tables` | the user at the other end of a connection | unknown: only the token protects the endpoint |
| `bind_to_loopback` | only this machine reaches a job's ports | a warning: other machines may |
| `bubblewrap` | a sandbox for container commands, and the mask of steps | an engine or --allow-host-commands; none |
| `has_no_screen` | no browser takes the terminal | a browser is opened |
| `cpu_name`, `num_cores` | the model, and the cores of this process | the architecture, and all cores |
| `container_bytes` | the memory that a container has left | the memory of the machine |

The supervisor of each command loads this file by its path. Hence it imports nothing else of ours, and what takes long
to import only where it is called.
"""

import os
import sys

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _SIGKILL = 1, 36, 9
"""From linux/prctl.h and signal.h."""

_PIDFD_GETFD = 438
"""Number of the system call that copies a file descriptor of a process, the same on all architectures; Linux 5.6."""

KERNEL_SETTINGS = ("/sys", "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
"""Through which root changes the machine, and not only its own processes."""

OWN_STATUS = "/proc/self/status"

_TCP_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")

_CGROUP = "/sys/fs/cgroup"
_CGROUPS = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)
"""Limit, usage and statistics of a container, in versions 2 and 1 of Linux control groups."""


def is_used() -> bool:
    """Return whether this is Linux, and its own calls are not switched off."""
    return sys.platform == "linux" and not os.environ.get("LOCALVERTEX_PORTABLE")


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parents end."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if is_used():
        # Importing `ctypes` takes a third of the time in which a supervisor starts.
        import _ctypes

        _ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen("", 0), "prctl"), (option, value, 0, 0, 0))


def descendants(parent: int) -> list[int]:
    """Return the process ids of all descendants, including those in other process groups."""
    children = map(int, _text(f"/proc/{parent}/task/{parent}/children").split())
    return [pid for child in children for pid in (child, *descendants(child))]


def root_of(pid: int) -> str:
    """Return the root folder of a process, with what is mounted for it alone."""
    return f"/proc/{pid}/root"


def is_frozen(parent: int) -> bool:
    """Return whether a descendant is stopped; False if it is not known."""
    # The state follows the name of the program, see proc(5).
    found = (_text(f"/proc/{pid}/stat").rpartition(")")[2].split() for pid in descendants(parent))
    return any(fields[0] in "Tt" for fields in found if fields)


def tcp_tables() -> list[str]:
    """Return the files with the kernel's tables of TCP sockets; empty if there are none."""
    return [path for path in _TCP_TABLES if is_used() and os.path.exists(path)]


def bind_to_loopback(inode: int) -> bool:
    """Bind a listening socket of any of the user's processes to the loopback device; False if no process has it.

    Raises:
        OSError: The system does not permit it.
    """
    import ctypes
    import socket
    from glob import iglob

    for link in iglob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link) != f"socket:[{inode}]":
                continue
            process = os.pidfd_open(int(link.split("/")[2]))
        except (FileNotFoundError, PermissionError, ProcessLookupError):  # it has ended, or is another user's
            continue
        copy = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, int(link.split("/")[4]), 0)
        os.close(process)
        if copy < 0:
            raise OSError(number := ctypes.get_errno(), os.strerror(number))
        with socket.socket(fileno=copy) as same:
            same.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
        return True
    return False


def bubblewrap() -> str | None:
    """Return the path of bubblewrap's program; None where it is not installed."""
    import shutil

    return shutil.which("bwrap") if is_used() else None


def has_no_screen() -> bool:
    """Return whether all browsers of this machine would take the terminal, which no variable changes."""
    return sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))


def cpu_name() -> str:
    """Return the model of this machine's CPU; empty if it is not known."""
    import re

    found = re.search(r"^model name\s*:\s*(.+)$", _text("/proc/cpuinfo"), re.MULTILINE)
    return found[1].strip() if found else ""


def num_cores() -> int:
    """Return how many cores this process may use; 0 if it is not known."""
    return len(os.sched_getaffinity(0)) if is_used() else 0


def container_bytes() -> int:
    """Return the memory that this process's container has left; the largest number without a container or a limit.

    Source: the Linux kernel's cgroup-v2 and cgroup-v1 memory documentation.
    """
    found = [sys.maxsize]
    for names in _CGROUPS:
        limit, usage, statistics = (_text(f"{_CGROUP}/{name}") for name in names)
        try:
            left = int(limit) - int(usage)
        except ValueError:
            # There is no such file, or it contains "max": there is no limit.
            continue
        # Cached file pages count as used, but the kernel reclaims them before it refuses memory.
        found.append(max(0, left + _inactive_file_bytes(statistics)))
    return min(found)


def _inactive_file_bytes(statistics: str) -> int:
    try:
        values = {name: int(value) for name, value in map(str.split, statistics.splitlines())}
    except ValueError:
        return 0
    return values.get("total_inactive_file", values.get("inactive_file", 0))


def _text(path: str) -> str:
    """Return the text of a file of the kernel; empty if it cannot be read, and where Linux's calls are not used."""
    try:
        with open(path if is_used() else os.devnull, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
