"""How much memory this process may still take."""

from __future__ import annotations

import pathlib

CGROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
"""Limit and use of a container, in version 2 and 1 of Linux' control groups."""


def available_bytes(proc: pathlib.Path = pathlib.Path("/proc"), cgroup: pathlib.Path = pathlib.Path("/sys/fs/cgroup")) -> int:  # fmt: skip  # noqa: E501
    """What the machine has free or could free, or less where a container's limit is nearer.

    Sources: proc(5), MemAvailable; the Linux kernel's cgroup-v2 and cgroup-v1 memory documentation.
    """
    fields = dict(line.split(":", 1) for line in (proc / "meminfo").read_text().splitlines() if ":" in line)
    available = int(fields["MemAvailable"].split()[0]) * 1024
    for limit_file, use_file in CGROUPS:
        limit, use = _number(cgroup / limit_file), _number(cgroup / use_file)
        if limit is not None and use is not None:
            # Cached file pages count as used, but the kernel gives them back before it refuses memory.
            free = limit - use + _inactive_file_bytes(cgroup / use_file)
            available = min(available, max(0, free))
    return available


def _number(path: pathlib.Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        # No such file, or "max": no limit.
        return None


def _inactive_file_bytes(use_file: pathlib.Path) -> int:
    try:
        lines = (use_file.parent / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    values = dict(line.split() for line in lines)
    return int(values.get("total_inactive_file", values.get("inactive_file", 0)))
