"""A replica's events in a bucket: an object cannot grow, so one is written anew until it is big enough."""

from __future__ import annotations

import contextlib
import threading

from trainer.files import storage

PART_BYTES = 256 * 2**10
"""A part that has grown to this size is followed by the next one: bounds what a write costs in a long run."""
SECONDS_BETWEEN_WRITES = 15.0
"""An object may be written once a second at most, and a minute of late news would be too much."""
_PATIENCE_SECONDS = 60.0
"""How long a process that leaves waits for its last lines to arrive."""


class EventParts:
    """Writes `<replica>.jsonl`, `<replica>.0001.jsonl` and so on; a restarted process begins with the next number.

    A thread does it: training does not wait for a bucket that answers slowly or not at all.
    """

    def __init__(self, directory: str, replica: str) -> None:
        self._directory, self._replica = directory, replica
        earlier = (split_name(name) for name in storage.names(directory))
        self._part = 1 + max((part for name, part in earlier if name == replica), default=-1)
        self._lines: list[str] = []
        self._num_written = 0
        self._changed = threading.Condition()
        self._is_urgent = False
        threading.Thread(target=self._write_forever, name="events", daemon=True).start()

    def append(self, line: str, *, at_once: bool, wait: bool) -> None:
        """Take a line, to be written soon.

        Args:
            line: without its end.
            at_once: do not wait for others to come.
            wait: return when it is written; after a minute at the latest.
        """
        with self._changed:
            self._lines.append(line)
            self._is_urgent = self._is_urgent or at_once
            self._changed.notify_all()
            if wait:
                self._changed.wait_for(lambda: self._num_written == len(self._lines), _PATIENCE_SECONDS)

    def _write_forever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_urgent, SECONDS_BETWEEN_WRITES)
                self._is_urgent, lines = False, list(self._lines)
                if self._num_written == len(lines):
                    continue
            text = "\n".join([*lines, ""]).encode()
            # A bucket that is full or away shall not end a run for the sake of its diary: the next write has it all.
            with contextlib.suppress(OSError):
                storage.write_bytes(storage.join(self._directory, part_name(self._replica, self._part)), text)
                self._written(len(lines), is_full=len(text) >= PART_BYTES)

    def _written(self, num_lines: int, *, is_full: bool) -> None:
        with self._changed:
            self._num_written = num_lines
            if is_full:
                self._part, self._num_written = self._part + 1, 0
                del self._lines[:num_lines]
            self._changed.notify_all()


def part_name(replica: str, part: int) -> str:
    """File name of a part, 0 is the first."""
    return f"{replica}.{part:04d}.jsonl" if part else f"{replica}.jsonl"


def split_name(file_name: str) -> tuple[str, int]:
    """Replica and part of a file name; an empty replica for a file of another kind."""
    stem, dot, ending = file_name.rpartition(".")
    if not dot or ending != "jsonl":
        return "", 0
    replica, dot, part = stem.rpartition(".")
    return (replica, int(part)) if dot and part.isdecimal() else (stem, 0)
