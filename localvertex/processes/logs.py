"""Logs: one file per task with its attempts in order; replicas of custom jobs have their own."""

import os
import re
from pathlib import Path
from typing import IO

_MAX_LINE = 500

_EXECUTOR = "[KFP Executor "
"""Prefix of the lines that kfp itself writes."""

_EXECUTOR_INPUT = re.compile(
    r"^\[KFP Executor [^\]\n]*\]: Got executor_input:\n\{\n.*?^\}$\n?", re.MULTILINE | re.DOTALL
)
"""What kfp's executor prints before a step starts: its whole input, which is also in executor_input.json."""


def tail(log: Path, num_lines: int) -> list[str]:
    """Return the last lines of a log, read from its end, without the dump of the step's input.

    Of a progress bar, only its last state counts.
    """
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 64 * 1024))
        text = file.read().decode("utf-8", "replace")
    text = _EXECUTOR_INPUT.sub("", text).rstrip()
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")]
    return lines[-num_lines:] if text else []


def last_line(log: Path) -> str:
    """Return the last line that the program itself wrote, its error if it failed; empty when there is none."""
    lines = tail(log, 100) if log.is_file() else []
    own = (line.strip()[:_MAX_LINE] for line in reversed(lines) if not line.startswith(_EXECUTOR))
    return next(filter(None, own), "")


def opened(log: Path) -> IO[bytes]:
    """Open a log for adding to it; a link or a pipe that a step has put in its place is an error.

    Raises:
        OSError: It cannot be opened.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.fdopen(os.open(log, flags, 0o666), "ab")


def add(log: Path, text: str) -> None:
    """Add a line by localvertex itself."""
    with opened(log) as file:
        file.write(text.encode() + b"\n")


def failure_text(code: int, log: Path) -> str:
    """Describe a failed process by its exit code and the last line of its log."""
    line = last_line(log)
    return f"exit code {code}: {line}" if line else f"exit code {code}, and its log is empty"
