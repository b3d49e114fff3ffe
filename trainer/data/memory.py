"""How much memory this process may still use."""

import pathlib

import psutil

_CGROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
"""Limit and usage of a container, in versions 2 and 1 of Linux control groups."""


def available_bytes(cgroup: pathlib.Path = pathlib.Path("/sys/fs/cgroup")) -> int:
    """Return the memory that the machine has free or can reclaim, or less where a container's limit is nearer.

    Where the machine does not report its memory it is 0: data is then read from the disk, which is slower but works.

    Sources: psutil's `virtual_memory().available`; the Linux kernel's cgroup-v2 and cgroup-v1 memory documentation.
    """
    try:
        available = int(psutil.virtual_memory().available)
    except (OSError, RuntimeError):
        # Not the user's mistake: some sandboxes hide /proc.
        return 0
    for limit_file, usage_file in _CGROUPS:
        limit, usage = _number(cgroup / limit_file), _number(cgroup / usage_file)
        if limit is not None and usage is not None:
            # Cached file pages count as used, but the kernel reclaims them before it refuses memory.
            free = limit - usage + _inactive_file_bytes(cgroup / usage_file)
            available = min(available, max(0, free))
    return available


def _number(path: pathlib.Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        # There is no such file, or it contains "max": there is no limit.
        return None


def _inactive_file_bytes(usage_file: pathlib.Path) -> int:
    try:
        lines = (usage_file.parent / "memory.stat").read_text().splitlines()
        values = {name: int(value) for name, value in (line.split() for line in lines)}
    except (OSError, ValueError):
        return 0
    return values.get("total_inactive_file", values.get("inactive_file", 0))
