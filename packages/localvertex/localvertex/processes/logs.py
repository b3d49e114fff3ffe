"""Logs: one file per task with its attempts in order; replicas of custom jobs have their own."""

import os
import re
import signal
from pathlib import Path
from typing import IO

from localvertex._base.userinput.regular_files import open_regular

_MAX_LINE = 500

_SIGNAL_BASE = 128
"""A process that a signal ended has this plus the signal's number as its exit code."""

_TRACEBACK = "Traceback (most recent call last):"

_EXECUTOR = "[KFP Executor "
"""Prefix of the lines that kfp itself writes."""

_EXECUTOR_INPUT = re.compile(
    r"^\[KFP Executor [^\]\n]*\]: Got executor_input:\n\{\n.*?^\}$\n?", re.MULTILINE | re.DOTALL
)
"""Lines that kfp's executor prints before a step starts: its whole input, which is also in executor_input.json."""


_DATE = r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: )?"
_SOURCE = r"(?:\d{4} \d\d:\d\d:[\d.]+ +\d+)? [\w./-]+:\d+\] "
"""TensorFlow's C++ code begins a line with date, level and source file, in either of two orders."""

_NOISE = re.compile(
    "WARNING: All log messages before absl::InitializeLog"
    "|To enable the following instructions: .* rebuild TensorFlow"
    "|Skipping registering GPU devices"
    f"|{_DATE}[IW]{_SOURCE}"
    f"|{_DATE}E{_SOURCE}.*(?:Unable to register|already registered|cuInit|kernel version|oneDNN)"
)
"""Lines that TensorFlow prints when it starts, with and without a GPU; never a step's own text."""

_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: .*)?")
"""The line of a traceback that names the exception."""

_ERROR = re.compile(
    r"(?:[^\s:]+: )?(?:fatal )?error: .+"
    r"|Fatal Python error: .+"
    r"|F\d{4} \d\d:\d\d:.+\] .+"
    r"|\S+: (?:line )?(?:\d+: )?.*(?:not found|No such file or directory|Permission denied)",
    re.IGNORECASE,
)
"""Errors of programs as one line: of this project and of most others, of Python, C++ and a shell."""


_CONFLICT = re.compile(r"ERROR: (Cannot install .*?)(?=\n *\n(?!The conflict)|\nTo fix|\nERROR:|\Z)", re.DOTALL)
"""pip's message about versions that exclude each other, and about the packages that demand them."""


def tail(log: Path, num_lines: int) -> list[str]:
    """Return the last lines of a log, read from its end, without the dump of the step's input.

    Of a progress bar, only its last state counts. A link or a pipe that a step put in place of the log has no lines.
    """
    try:
        # The lines become part of the error, which later steps get: a link could lead to any file of the user.
        file = open_regular(log)
    except OSError:
        return []
    with file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 64 * 1024))
        text = file.read().decode("utf-8", "replace")
    text = _EXECUTOR_INPUT.sub("", text).rstrip()
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")]
    return lines[-num_lines:] if text else []


def last_line(log: Path) -> str:
    """Return the last line that the program itself wrote; empty when there is none, or when it reports an error.

    The error of a step is reported once, when the step has failed.
    """
    lines = _own_lines(log)
    start = _last_traceback(lines)
    if start is not None and _last_exception(lines) in (None, len(lines) - 1):
        lines = lines[:start]
    return shortened(lines[-1]) if lines and not _ERROR.fullmatch(lines[-1]) else ""


def _own_lines(log: Path) -> list[str]:
    """Return the last lines of a log that the program itself wrote, without kfp's and TensorFlow's."""
    lines = tail(log, 100) if log.is_file() else []
    return [
        line.rstrip() for line in lines if line.strip() and not line.startswith(_EXECUTOR) and not _NOISE.match(line)
    ]


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
    """Describe a failed process by its exit code and the reason in its log.

    Only an exception or an error at the end of the log counts as the reason. Anything else is quoted as what it is.
    """
    text, lines = _exit_text(code), _own_lines(log)
    if not lines:
        return f"{text}, and its log {'contains no reason' if log.is_file() and tail(log, 1) else 'is empty'}"
    number = _last_exception(lines)
    if code <= _SIGNAL_BASE and (number == len(lines) - 1 or _ERROR.fullmatch(lines[-1])):
        return f"{text}: {shortened(lines[-1])}"
    if number is not None:
        return f"{text}; last exception in its log: {shortened(lines[number])}"
    return f"{text}; last line of its log: {shortened(lines[-1])}"


def last_exception(log: Path) -> str:
    """Return the line that names the last exception in a log; empty when there is none."""
    lines = _own_lines(log)
    number = _last_exception(lines)
    return "" if number is None else lines[number]


def conflict(log: Path) -> str:
    """Return pip's own sentence on packages that exclude each other; empty when its log has none."""
    text = "\n".join(tail(log, 400))
    found = _CONFLICT.search(text)
    return f"a conflict: {shortened(' '.join(found[1].split()))}" if found else ""


def failure_of_pip(code: int, log: Path) -> str:
    """Describe a failed installation by pip's last error, which its hints and notices follow."""
    errors = [line for line in tail(log, 400) if line.lstrip().startswith("ERROR: ")]
    return f"{_exit_text(code)}: {shortened(errors[-1])}" if errors else failure_text(code, log)


def shortened(line: str) -> str:
    """Return a line of a log as messages quote it."""
    return line.strip()[:_MAX_LINE]


def _exit_text(code: int) -> str:
    """Return the exit code, with the signal that it means."""
    try:
        return f"exit code {code} ({signal.Signals(code - _SIGNAL_BASE).name})"
    except ValueError:
        return f"exit code {code}"


def _last_traceback(lines: list[str]) -> int | None:
    """Return the index of the line that begins the last traceback."""
    return max((number for number, line in enumerate(lines) if line == _TRACEBACK), default=None)


def _last_exception(lines: list[str]) -> int | None:
    """Return the index of the line that ends the last traceback: the first one that is not indented."""
    start = _last_traceback(lines)
    if start is None:
        return None
    end = next((number for number in range(start + 1, len(lines)) if not lines[number].startswith(" ")), None)
    return end if end is not None and _EXCEPTION.fullmatch(lines[end]) else None
