"""Logs of tasks: one file a task, its attempts one after the other; replicas of custom jobs have their own."""

import re
from pathlib import Path

MAX_LINE = 500

EXECUTOR = "[KFP Executor "
"""How lines of kfp's own begin."""

EXECUTOR_INPUT = re.compile(
    r"^\[KFP Executor [^\]\n]*\]: Got executor_input:\n\{\n.*?^\}$\n?", re.MULTILINE | re.DOTALL
)
"""What kfp's executor says before a step begins: its whole input, which is in executor_input.json too."""


def tail(log: Path, num_lines: int) -> list[str]:
    """The last lines of a log, read from its end, without the dump of the step's input.

    Progress bars count with what they showed last.
    """
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 64 * 1024))
        text = file.read().decode("utf-8", "replace")
    text = EXECUTOR_INPUT.sub("", text).rstrip()
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")]
    return lines[-num_lines:] if text else []


def last_words(log: Path) -> str:
    """The last line of a log that is the program's own, its error when it failed; empty when there is none."""
    lines = tail(log, 100) if log.is_file() else []
    words = (line.strip()[:MAX_LINE] for line in reversed(lines) if not line.startswith(EXECUTOR))
    return next(filter(None, words), "")


def add(log: Path, text: str) -> None:
    """Adds a line of our own."""
    with log.open("a") as file:
        file.write(text + "\n")


def failure_text(code: int, log: Path) -> str:
    """What a process that failed is reported as: its exit code and its last words."""
    words = last_words(log)
    return f"exit code {code}: {words}" if words else f"exit code {code}, and nothing in its log"
