"""Identify the processes that a test started, and check whether they have ended."""

import re
from collections.abc import Iterable
from pathlib import Path

import psutil


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended, though its parent may not have waited for it."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        # It ended between the two calls.
        return True


def with_own_id(number: int, among: Iterable[psutil.Process]) -> psutil.Process:
    """Return the process with this id in its own process table, as a step behind the mask sees it."""
    (found,) = [each for each in among if _own_id(each) == number]
    return found


def working_in(folder: Path) -> list[psutil.Process]:
    """Return the processes of this machine that work in a folder or below it."""
    return [each for each in psutil.process_iter() if _folder(each).startswith(str(folder))]


def _folder(process: psutil.Process) -> str:
    try:
        return str(process.cwd())
    except psutil.Error:
        return ""


def _own_id(process: psutil.Process) -> int:
    try:
        (line,) = re.findall(r"^NSpid:.*?(\d+)$", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return int(process.pid)
    return int(line)


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
