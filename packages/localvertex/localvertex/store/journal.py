"""The journal of a run: each change since the snapshot in run.json, one JSON object per line (docs/journal.md).

`{"crc": "89abcdef", "time": "...", "task": {...}}` is the new entry of a task, and `"run"` instead of `"task"` has the
changed fields of the run. The checksum covers the line and all lines before it, so that a line that was changed,
removed or moved is noticed. A line counts when it is complete: its change is reported only after it has been written.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from localvertex._base.json_object import JsonObject

PATTERN = "journal-*.jsonl"

_PREFIX = b'{"crc": "%08x", '
_LENGTH = len(_PREFIX % 0)

Change = JsonObject


@dataclass(frozen=True, kw_only=True)
class Position:
    """The end of what a snapshot contains of a journal."""

    file: str
    """Name of the file in the run's folder."""
    size: int = 0
    """Size in bytes."""
    crc: int = 0
    """Checksum of these bytes."""

    @classmethod
    def of_snapshot(cls, value: Any) -> "Position":
        """Read the field of a snapshot.

        Raises:
            ValueError: It is damaged.
        """
        kinds = {"file": str, "size": int, "crc": int}
        if not isinstance(value, dict) or {name: type(each) for name, each in value.items()} != kinds:
            raise ValueError("the field 'journal' is of the wrong type")
        if not Path(value["file"]).match(PATTERN) or os.sep in value["file"] or value["size"] < 0:
            raise ValueError("the field 'journal' does not name a journal")
        return cls(**value)

    def as_json(self) -> JsonObject:
        """Return the field of a snapshot."""
        return asdict(self)


class Journal:
    """The journal that a run is writing. Used by one thread."""

    def __init__(self, folder: Path, number: int) -> None:
        self._name, self._size, self._crc = f"journal-{number}.jsonl", 0, 0
        # A file with this name is left over from a process that was killed before a snapshot named it.
        self._file = os.open(folder / self._name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)

    @property
    def position(self) -> Position:
        """Return the present end."""
        return Position(file=self._name, size=self._size, crc=self._crc)

    def append(self, changes: Iterable[Change]) -> None:
        """Add changes; they survive the end of this process as soon as this returns.

        Raises:
            OSError: They cannot be written; readers see none of them.
        """
        lines, crc = [], self._crc
        for change in changes:
            text = json.dumps(change, default=str).encode()[1:] + b"\n"
            crc = crc32(text, crc)
            lines.append(_PREFIX % crc + text)
        data = b"".join(lines)
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError:
            # A part of a line would damage the next one. This works on a full disk too.
            os.ftruncate(self._file, self._size)
            raise
        self._size, self._crc = self._size + len(data), crc

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read(folder: Path, position: Position) -> list[Change]:
    """Return the changes after a position. A last line without an end is ignored: it is being written, or torn.

    Raises:
        OSError: There is no such file.
        ValueError: A line is damaged.
    """
    with (folder / position.file).open("rb") as file:
        file.seek(position.size)
        *lines, _ = file.read().split(b"\n")
    crc, offset, changes = position.crc, position.size, []
    for line in lines:
        crc = crc32(line[_LENGTH:] + b"\n", crc)
        if line[:_LENGTH] != _PREFIX % crc:
            raise ValueError(f"{position.file} is damaged at byte {offset}: the line does not match its checksum")
        changes.append(json.loads(line))
        offset += len(line) + 1
    return changes
