"""Logs of tasks: one file a task, its attempts one after the other; replicas of custom jobs have their own."""

from pathlib import Path

MAX_LINE = 500


def tail(log: Path, num_lines: int) -> list[str]:
    """The last lines of a log, read from its end; progress bars count with what they showed last."""
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 64 * 1024))
        text = file.read().decode("utf-8", "replace")
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.rstrip().split("\n")]
    return lines[-num_lines:] if text.strip() else []


def last_words(log: Path) -> str:
    """The last line of a log, which in a failed program is its error; empty when there is none."""
    lines = tail(log, 1) if log.is_file() else []
    return lines[0].strip()[:MAX_LINE] if lines else ""


def add(log: Path, text: str) -> None:
    """Adds a line of our own."""
    with log.open("a") as file:
        file.write(text + "\n")


def failure_text(code: int, log: Path) -> str:
    """What a process that failed is reported as: its exit code and its last words."""
    words = last_words(log)
    return f"exit code {code}: {words}" if words else f"exit code {code}, and nothing in its log"
