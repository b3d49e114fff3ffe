"""The lines of manifests that name an image, in a file on disk, so they need no memory."""

import hashlib
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trainer.data.splits import strictness
from trainer.files import temporary_database

_COLUMNS = "location, name, label, split, file, number"
_SCHEMA = f"CREATE TABLE lines ({_COLUMNS});"
_INSERT = f"INSERT INTO lines ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
_FIRSTS = "CREATE TABLE firsts AS SELECT {0}, MIN(rowid) AS first FROM lines GROUP BY {0} HAVING COUNT(*) > 1"
_LATER = "SELECT lines.rowid FROM firsts JOIN lines USING ({0}) WHERE lines.rowid > first"
_CONFLICT = """
SELECT lines.rowid, first FROM firsts JOIN lines USING (location) JOIN lines AS one ON one.rowid = first
WHERE lines.label <> one.label ORDER BY lines.rowid LIMIT 1
"""
_STRICTEST = """
UPDATE lines SET split = (
    SELECT split FROM lines AS other WHERE other.location = lines.location ORDER BY strictness(split) DESC LIMIT 1
) WHERE rowid IN (SELECT first FROM firsts)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line that names an image."""

    location: str
    name: str
    label: str
    split: str
    file: int
    """Position of the manifest in the order of reading."""
    number: int
    """Number of the line in its manifest."""


class ManifestTable:
    """All lines in the order in which they were added; after `unite`, one line per image."""

    def __init__(self) -> None:
        """Make a file without a name, which vanishes with the process, even a killed one."""
        self._database = temporary_database.connect(_SCHEMA)
        weakref.finalize(self, self._database.close)
        self._database.create_function("strictness", 1, strictness, deterministic=True)
        self._database.create_function("other_name", 2, _other_name, deterministic=True)

    def add(self, lines: Iterable[Line]) -> None:
        """Append lines."""
        with _errors():
            self._database.executemany(_INSERT, map(_values, lines))

    def conflict(self) -> tuple[Line, Line] | None:
        """Return the first line that gives an image another label than an earlier one, and the image's first line."""
        with _errors():
            self._find_repeats("location")
            if not (found := self._database.execute(_CONFLICT).fetchone()):
                return None
            later, first = (
                next(self._lines(f"SELECT {_COLUMNS} FROM lines WHERE rowid = ?", rowid))  # noqa: S608 - constants
                for rowid in found
            )
            return later, first

    def unite(self) -> Iterator[Line]:
        """Yield and remove all but the first line of each image, which gets the strictest split; call this once."""
        with _errors():
            self._find_repeats("location")
            later = _LATER.format("location")
            yield from self._lines(f"SELECT {_COLUMNS} FROM lines WHERE rowid IN ({later}) ORDER BY rowid")  # noqa: S608
            self._database.execute(_STRICTEST)
            self._database.execute(f"DELETE FROM lines WHERE rowid IN ({later})")  # noqa: S608 - constants
            # Equal paths in other buckets or folders get other names.
            self._find_repeats("name")
            later = _LATER.format("name")
            self._database.execute(f"UPDATE lines SET name = other_name(location, name) WHERE rowid IN ({later})")  # noqa: S608

    def __iter__(self) -> Iterator[Line]:
        return self._lines(f"SELECT {_COLUMNS} FROM lines ORDER BY rowid")  # noqa: S608 - constants

    def counts(self) -> dict[tuple[str, str], int]:
        """Return (label, split) -> number of lines."""
        with _errors():
            found = self._database.execute("SELECT label, split, COUNT(*) FROM lines GROUP BY label, split")
            return {(label, split): count for label, split, count in found}

    def _find_repeats(self, column: str) -> None:
        """Fill the table `firsts` with the first row of each value that several lines have."""
        self._database.execute("DROP TABLE IF EXISTS firsts")
        self._database.execute(f"CREATE INDEX IF NOT EXISTS by_{column} ON lines ({column})")
        self._database.execute(_FIRSTS.format(column))

    def _lines(self, query: str, *values: Any) -> Iterator[Line]:
        with _errors():
            for location, name, label, split, file, number in self._database.execute(query, values):
                path = location.decode("utf-8", "surrogateescape")
                yield Line(location=path, name=name, label=label, split=split, file=file, number=number)


def _errors() -> Any:
    return temporary_database.errors_of("the lines of the manifests")


def _values(line: Line) -> tuple[Any, ...]:
    # As bytes, because a local folder may have a name that is not UTF-8.
    location = line.location.encode("utf-8", "surrogateescape")
    return location, line.name, line.label, line.split, line.file, line.number


def _other_name(location: bytes, name: str) -> str:
    return f"{hashlib.sha256(location).hexdigest()[:16]}/{name}"
