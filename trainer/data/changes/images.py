"""Matches the images of two lists by content, name and class, in a database on disk."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from trainer.files import temporary_database

ADDED, REMOVED, REPLACED, RELABELLED, RENAMED = KINDS = ("added", "removed", "replaced", "relabelled", "renamed")
_SCHEMA = """
CREATE TABLE images (is_now, name, label, content, brightness, contrast, size);
CREATE TABLE changes (kind, name, label, new_name, new_label, brightness, contrast, size);
CREATE TABLE pairs (before INTEGER PRIMARY KEY, now INTEGER);
"""
_STAGES = ((RENAMED, "content, label"), (RELABELLED, "content"), (REPLACED, "name, label"))
"""Kind of change and the columns that matched images have in common; each image is matched by one stage at most."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of one image."""

    name: str
    """Empty for an added image."""
    label: str
    new_name: str
    """Empty for a removed image."""
    new_label: str


class Leftovers:
    """Images of one list that are not in the other one with the same name, class and content."""

    def __init__(self) -> None:
        """Make a temporary file, which vanishes with the process."""
        self._database = temporary_database.connect(_SCHEMA)

    def close(self) -> None:
        """Remove the file."""
        self._database.close()

    def add(self, name: str, label: str, content: str, bins: tuple[int, ...], *, is_now: bool) -> None:
        """Add an image of the previous or of the new list."""
        self._database.execute("INSERT INTO images VALUES (?, ?, ?, ?, ?, ?, ?)", (is_now, name, label, content, *bins))

    def pair(self) -> None:
        """Find the change of each image; call this once, after all are added."""
        for kind, columns in _STAGES:
            self._pair(kind, columns)
        # A list may have a name twice.
        self._database.execute("DELETE FROM changes WHERE kind = ? AND name = new_name", (RENAMED,))
        for kind, is_now, columns in ((REMOVED, 0, "name, label, '', ''"), (ADDED, 1, "'', '', name, label")):
            rest = f"SELECT ?, {columns}, brightness, contrast, size FROM images WHERE is_now = ?"  # noqa: S608
            self._database.execute(f"INSERT INTO changes {rest}", (kind, is_now))

    def _pair(self, kind: str, columns: str) -> None:
        # Equal images are matched in the order of their names.
        ranked = (
            f"(SELECT rowid AS id, {columns}, ROW_NUMBER() OVER (PARTITION BY {columns} ORDER BY name) AS number"  # noqa: S608
            " FROM images WHERE is_now = {})"
        )
        self._database.execute(
            f"INSERT INTO pairs SELECT before.id, now.id FROM {ranked.format(0)} AS before"  # noqa: S608
            f" JOIN {ranked.format(1)} AS now USING ({columns}, number)"
        )
        self._database.execute(
            "INSERT INTO changes"
            " SELECT ?, a.name, a.label, b.name, b.label, b.brightness, b.contrast, b.size FROM pairs"
            " JOIN images AS a ON a.rowid = pairs.before JOIN images AS b ON b.rowid = pairs.now",
            (kind,),
        )
        self._database.execute(
            "DELETE FROM images WHERE rowid IN (SELECT before FROM pairs UNION ALL SELECT now FROM pairs)"
        )
        self._database.execute("DELETE FROM pairs")

    def counts(self, *, by_new_class: bool) -> dict[tuple[str, str], int]:
        """Return (kind, class) -> number of images, by their new or by their previous class."""
        column = "new_label" if by_new_class else "label"
        found = self._database.execute(f"SELECT kind, {column}, COUNT(*) FROM changes GROUP BY 1, 2")  # noqa: S608
        return {(kind, label): count for kind, label, count in found}

    def first(self, kind: str, number: int) -> list[Change]:
        """Return the first changes of a kind, by name."""
        columns = "name, label, new_name, new_label"
        found = self._database.execute(
            f"SELECT {columns} FROM changes WHERE kind = ? ORDER BY {columns} LIMIT ?",  # noqa: S608
            (kind, number),
        )
        return [
            Change(name=name, label=label, new_name=new_name, new_label=new_label)
            for name, label, new_name, new_label in found
        ]

    def moves(self, number: int) -> list[tuple[str, str, int]]:
        """Return the classes between which most images were relabelled, and how many."""
        query = "SELECT label, new_label, COUNT(*) FROM changes WHERE kind = ? GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
        return list(self._database.execute(f"{query} LIMIT ?", (RELABELLED, number)))

    def new_contents(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield class and bins of each image whose content is new."""
        query = "SELECT new_label, brightness, contrast, size FROM changes WHERE kind IN (?, ?)"
        for label, *bins in self._database.execute(query, (ADDED, REPLACED)):
            yield label, tuple(bins)


@contextlib.contextmanager
def leftovers() -> Iterator[Leftovers]:
    """Make an empty collection and remove it at the end.

    Raises:
        OSError: The disk is full, or fails.
    """
    with temporary_database.errors_of("the changes"), contextlib.closing(Leftovers()) as made:
        yield made
