"""The images of a source while they are prepared: a row each in a file on disk, so memory does not grow with them."""

import contextlib
import dataclasses
import errno
import itertools
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trainer.data.preparing.prefixes import FIELD_BYTES, Extent
from trainer.data.sources.source import Identity
from trainer.data.splits import Content, Splits, strictest
from trainer.data.stored.records import Figures


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One image of the source."""

    name: str
    label: int | None
    """Index into the class names; None if the source does not know it, because the image cannot be read."""
    split: str
    """The split that the source assigned, or empty."""
    identity: Identity
    """Empty if the image was not looked at, or if its source has none."""
    reason: str = ""
    """Why the image is rejected; empty if it is used."""
    remarks: tuple[str, ...] = ()
    figures: Figures | None = None
    """None if the image is rejected."""
    stored_hash: str = ""
    """SHA-256 of the prepared image as stored."""
    offset: int = 0
    """Position of the prepared image in the file of prepared images, in bytes; with an `origin`, its number there."""
    origin: str = ""
    """Split and label in the previous dataset, as SPLIT:LABEL, if it has the prepared image; otherwise empty."""
    final: str = ""
    """Split in which the image is used; empty before `Rows.set_splits`, and if it is rejected."""
    num_stored_bytes: int = 0
    """Size of the prepared image."""


FIGURES = [field.name for field in dataclasses.fields(Figures)]
"""Of these, the first is the content hash, and the last two are tuples."""
_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE; PRAGMA cache_size = -2000;
CREATE TABLE images
    (name, label, split, reason, content_hash, num_stored_bytes, origin, offset, details, final DEFAULT '');
CREATE TABLE previous (content_hash PRIMARY KEY, split) WITHOUT ROWID;
BEGIN;
"""
"""Of the two, `previous` has the splits of the previous dataset, if there is one."""
_COLUMNS = "name, label, split, reason, content_hash, num_stored_bytes, origin, offset, details"
_NUM_COLUMNS = 9
_NUM_TOGETHER = 512
"""Rows of one statement, far below SQLite's limit on its values."""
_INDEX = "CREATE INDEX by_content ON images (final, content_hash, label, name, num_stored_bytes)"
_SELECT = f"SELECT {_COLUMNS}, final FROM images"  # noqa: S608 - constants


class Rows:
    """The rows of all images. Each method is one pass over them, sorted where it says so."""

    def __init__(self) -> None:
        """Make a file without a name, which vanishes with the process, even a killed one."""
        self.database = sqlite3.connect("", isolation_level=None)
        """Others add tables of their own, because moving rows within a database is fast."""
        self.database.executescript(_SCHEMA)

    def close(self) -> None:
        """Remove the file."""
        self.database.close()

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows in any order."""
        remaining = iter(rows)
        while chunk := list(itertools.islice(remaining, _NUM_TOGETHER)):
            marks = ", ".join([f"({', '.join('?' * _NUM_COLUMNS)})"] * len(chunk))
            values = [value for row in chunk for value in to_values(row)]
            self.database.execute(f"INSERT INTO images ({_COLUMNS}) VALUES {marks}", values)  # noqa: S608 - constants

    def by_name(self) -> Iterator[Row]:
        """Yield all rows, rejected ones too, in the order of their names: the same for every order of the source."""
        return map(from_values, self._query(f"{_SELECT} ORDER BY name, label, content_hash"))

    def used(self, split: str, first: str, last: str) -> Iterator[Row]:
        """Yield the rows of a split from one content hash to another, by content hash, label and name."""
        where = "WHERE final = ? AND content_hash BETWEEN ? AND ? ORDER BY content_hash, label, name"
        return map(from_values, self._query(f"{_SELECT} {where}", split, first, last))

    def contents(self) -> Iterator[Content]:
        """Yield each content with its labels, the strictest of the splits of the source, and the previous split."""
        query = """
            SELECT content_hash, label, images.split, COALESCE(previous.split, '')
            FROM images LEFT JOIN previous USING (content_hash) WHERE reason = '' ORDER BY content_hash"""
        for content_hash, group in itertools.groupby(self._query(query), key=lambda found: str(found[0])):
            _, labels, given, (previous, *_) = zip(*group, strict=True)
            yield Content(
                content_hash=content_hash, labels=frozenset(labels), split=strictest(given), previous=previous
            )

    def set_splits(self, splits: Splits) -> None:
        """Store the split of each image that is used."""
        self.database.execute("CREATE TABLE finals (content_hash PRIMARY KEY, split) WITHOUT ROWID")
        found = ((content.content_hash, splits.of(content)) for content in self.contents())
        self.database.executemany("INSERT INTO finals VALUES (?, ?)", found)
        final = "SELECT split FROM finals WHERE finals.content_hash = images.content_hash"
        self.database.execute(f"UPDATE images SET final = ({final}) WHERE reason = ''")  # noqa: S608 - a constant
        self.database.execute(_INDEX)

    def extent(self, split: str, first: str, last: str) -> Extent:
        """Return the extent of a split's rows from one content hash to another."""
        query = f"""
            SELECT COALESCE(SUM(num_stored_bytes), 0) + {FIELD_BYTES} * COUNT(*),
                (MIN(content_hash) IS NOT NULL) + (MIN(content_hash) IS NOT MAX(content_hash))
            FROM images WHERE final = ? AND content_hash BETWEEN ? AND ?"""  # noqa: S608 - a constant
        ((num_bytes, num_hashes),) = self._query(query, split, first, last)
        return Extent(num_bytes=num_bytes, num_hashes=num_hashes)

    def num_unchanged(self, split: str, first: str, last: str) -> tuple[int, int]:
        """Return the number of a split's rows from one content hash to another, and of those that it always had."""
        query = """
            SELECT COUNT(*), COALESCE(SUM(origin = final || ':' || label), 0)
            FROM images WHERE final = ? AND content_hash BETWEEN ? AND ?"""
        (found,) = self._query(query, split, first, last)
        return int(found[0]), int(found[1])

    def label_counts(self) -> dict[int, int]:
        """Return label -> number of images that are used."""
        return dict(self._query("SELECT label, COUNT(*) FROM images WHERE reason = '' GROUP BY label"))

    def split_counts(self) -> dict[tuple[str, int], int]:
        """Return (split, label) -> number of images that are used."""
        counts = self._query("SELECT final, label, COUNT(*) FROM images WHERE reason = '' GROUP BY final, label")
        return {(split, label): count for split, label, count in counts}

    def num_contents(self) -> tuple[int, int]:
        """Return the number of different images that are used, and how many of them are under several classes."""
        labels = "SELECT COUNT(DISTINCT label) num FROM images WHERE reason = '' GROUP BY content_hash"
        (found,) = self._query(f"SELECT COUNT(*), COALESCE(SUM(num > 1), 0) FROM ({labels})")  # noqa: S608 - a constant
        return int(found[0]), int(found[1])

    def _query(self, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
        return self.database.execute(query, values)


@contextlib.contextmanager
def opened() -> Iterator[Rows]:
    """Make rows and remove them at the end.

    Raises:
        OSError: The disk is full, or fails.
    """
    rows = Rows()
    try:
        yield rows
    except sqlite3.Error as error:
        number = errno.ENOSPC if error.sqlite_errorcode == sqlite3.SQLITE_FULL else errno.EIO
        raise OSError(number, f"the temporary file of the rows cannot be written ({error})") from error
    finally:
        rows.close()


def to_values(row: Row) -> tuple[str | int | None, ...]:
    """Return what a row contains, ready for JSON or SQLite."""
    figures = [getattr(row.figures, name) for name in FIGURES] if row.figures else None
    details = json.dumps([row.identity, row.remarks, row.stored_hash, figures])
    content_hash = row.figures.content_hash if row.figures else None
    return (
        *(row.name, row.label, row.split, row.reason, content_hash),
        *(row.num_stored_bytes, row.origin, row.offset, details),
    )


def from_values(values: Sequence[Any]) -> Row:
    """Return the row that `to_values` took apart."""
    name, label, split, reason, _, num_stored_bytes, origin, offset, details, *final = values
    identity, remarks, stored_hash, figures = json.loads(details)
    if figures:
        figures[-2:] = map(tuple, figures[-2:])
    return Row(
        name=name,
        label=label,
        split=split,
        identity=identity,
        reason=reason,
        remarks=tuple(remarks),
        figures=Figures(**dict(zip(FIGURES, figures, strict=True))) if figures else None,
        stored_hash=stored_hash,
        offset=offset,
        num_stored_bytes=num_stored_bytes,
        origin=origin,
        final=final[0] if final else "",
    )
