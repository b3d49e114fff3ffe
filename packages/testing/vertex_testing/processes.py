"""Identify the processes that a test started, and check whether they have ended."""

from collections.abc import Iterable

import psutil


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended, though its parent may not have waited for it."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        # It ended between the two calls.
        return True


def command_line(process: psutil.Process) -> list[str]:
    """Return the words that a process was started with; none when it has ended."""
    try:
        words: list[str] = process.cmdline()
        return words
    except psutil.NoSuchProcess:
        return []


def have_ended(processes: Iterable[psutil.Process]) -> bool:
    """Return whether all of these processes have ended."""
    return all(map(has_ended, processes))
