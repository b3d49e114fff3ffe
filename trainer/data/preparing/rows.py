"""The images of a source while they are prepared: a row each in a file on disk, not in memory."""

import contextlib
import dataclasses
import errno
import functools
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from exact_resume.files.overlap import batched
from trainer.data.preparing.prefixes import FIELD_BYTES
from trainer.data.sources.source import Identity
from trainer.data.splits import SPLITS, Content, Splits, strictness
from trainer.data.stored.records import Figures


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One image of the source."""

    name: str
    label: int | None
    """Index into the class names; None if the source does not know it, because the image cannot be read."""
    split: str
    """The split that the source assigned, or empty."""
    details: str
    """All that the source does not decide, as JSON: the end of the image's line in the list of images."""
    reason: str = ""
    """Why the image is rejected; empty if it is used."""
    content_hash: str | None = None
    """SHA-256 of the original; None if the image is rejected."""
    stored_hash: str = ""
    """SHA-256 of the prepared image as stored."""
    num_stored_bytes: int = 0
    """Size of the prepared image."""
    origin: str = ""
    """Split in the previous dataset, if it has the prepared image; otherwise empty."""
    stored_label: int | None = None
    """Label in its record in the previous dataset; None without an `origin`."""
    offset: int = 0
    """Position of the prepared image in the file of prepared images, in bytes; with an `origin`, its number there."""
    final: str = ""
    """Split in which the image is used; empty before `Rows.set_splits`, and if it is rejected."""

    @classmethod
    def of(
        cls,
        *,
        identity: Identity,
        figures: Figures | None = None,
        remarks: tuple[str, ...] = (),
        appearance: str = "",
        **attributes: Any,
    ) -> "Row":
        """Return the row of an image that was read, or that cannot be read.

        Args:
            identity: Empty if the image was not looked at, or if its source has none.
            figures: None if the image is rejected.
            remarks: What is not used of the file.
            appearance: See `signatures.appearance_of`.
            **attributes: The other attributes, without the details, which follow from them.
        """
        row = cls(details="", content_hash=figures.content_hash if figures else None, **attributes)
        content: dict[str, Any] = {"identity": identity}
        if figures is None:
            content["reason"] = row.reason
        else:
            content |= vars(figures) | {"stored_hash": row.stored_hash, "remarks": remarks, "appearance": appearance}
            content["num_stored_bytes"] = row.num_stored_bytes
        return dataclasses.replace(row, details=_ENCODER.encode(content))

    @property
    def identity(self) -> Identity:
        """Identity of the image when it was read."""
        found: Identity = self.content["identity"]
        return found

    @property
    def remarks(self) -> Sequence[str]:
        """Parts of the file that are not used."""
        found: Sequence[str] = self.content.get("remarks", ())
        return found

    @property
    def appearance(self) -> str:
        """See `signatures.appearance_of`; empty if the image is rejected."""
        found: str = self.content.get("appearance", "")
        return found

    @functools.cached_property
    def figures(self) -> Figures | None:
        """None if the image is rejected."""
        if self.content_hash is None:
            return None
        found: dict[str, Any] = {name: self.content[name] for name in _FIGURES}
        # JSON has lists.
        for name in ("pixel_sums", "pixel_sums_of_squares"):
            found[name] = tuple(found[name])
        return Figures(**found)

    @functools.cached_property
    def content(self) -> dict[str, Any]:
        """The details."""
        # Not before it is asked for, because most passes over all rows need only columns.
        found: dict[str, Any] = DECODE(self.details)[0]
        return found


Values = tuple[str | int | None, ...]
"""The content of a row, as `to_values` returns it."""
RowBytes = tuple[Row, bytes]
"""A row with its prepared image, or with its record as it is stored."""
_FIGURES = [field.name for field in dataclasses.fields(Figures)]
_ENCODER = json.JSONEncoder(sort_keys=True)
DECODE = json.JSONDecoder().raw_decode
"""Decodes what was encoded here, which has no blanks around it, in half the time of `json.loads`."""
_BATCH_SIZE = 256
"""Number of rows that are appended at a time."""
COLUMNS = "name, label, split, reason, content_hash, stored_hash, num_stored_bytes, origin, offset, details"
"""Columns of what `to_values` returns."""
_NAMES = COLUMNS.split(", ")
_ALL_NAMES = [*_NAMES, "stored_label", "final"]
NARROW = COLUMNS.removesuffix(", details")
"""All columns except the one with nearly all bytes, which is in a table of its own: passes over the others are fast."""
_SCHEMA = f"""
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE; PRAGMA cache_size = -16000;
CREATE TABLE texts (number INTEGER PRIMARY KEY, details);
CREATE TABLE images ({NARROW}, text, stored_label, final DEFAULT '');
CREATE TABLE previous (content_hash PRIMARY KEY, split) WITHOUT ROWID;
BEGIN;
"""
"""Tables; `previous` has the splits of the previous dataset, if there is one."""
_INDEX = "CREATE INDEX by_content ON images (final, content_hash, label, name, num_stored_bytes)"
_SELECT_BY_NAME = f"""
SELECT {NARROW}, (SELECT details FROM texts WHERE number = text), stored_label, final
FROM (SELECT * FROM images ORDER BY name, label, content_hash LIMIT -1)"""  # noqa: S608 - constants
"""Without the limit, SQLite would sort the details, too."""
_DETAILS = "CASE WHEN stored_label IS label THEN '' ELSE (SELECT details FROM texts WHERE number = text) END"
_SELECT_USED = f"SELECT {NARROW}, {_DETAILS}, stored_label, final FROM images"  # noqa: S608
"""A record that is in the previous dataset as it is needs no details."""


class Rows:
    """The rows of all images. Each method is one pass over them, sorted where it says so."""

    def __init__(self) -> None:
        """Make a file without a name, which vanishes with the process, even a killed one."""
        self.database = sqlite3.connect("", isolation_level=None)
        """Others add tables of their own, because moving rows within a database is fast."""
        self.database.executescript(_SCHEMA)
        self._num_texts = 0

    def close(self) -> None:
        """Remove the file."""
        self.database.close()

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows in any order."""
        self.insert("images", ((*to_values(row), None) for row in rows), "stored_label")

    def insert(self, table: str, several: Iterable[Values], last: str) -> None:
        """Append rows to a table that has the narrow columns, the number of a text, and one more column.

        Args:
            table: Its name.
            several: What each row contains, as `to_values` returns it, and the value of the last column.
            last: Name of that column.
        """
        marks = ", ".join("?" * (len(_NAMES) + 1))
        narrow = f"INSERT INTO {table} ({NARROW}, text, {last}) VALUES ({marks})"  # noqa: S608 - constants
        for some in batched(several, _BATCH_SIZE):
            numbers = range(self._num_texts, self._num_texts + len(some))
            self._num_texts += len(some)
            texts = zip(numbers, (values[-2] for values in some), strict=True)
            self.database.executemany("INSERT INTO texts VALUES (?, ?)", texts)
            rows = ((*values[:-2], number, values[-1]) for number, values in zip(numbers, some, strict=True))
            self.database.executemany(narrow, rows)

    def by_name(self) -> Iterator[Row]:
        """Yield all rows, rejected ones too, in the order of their names: the same for every order of the source."""
        return map(from_values, self._query(_SELECT_BY_NAME))

    def used_rows(self, split: str, first: str, last: str) -> Iterator[Row]:
        """Yield the rows of a split from one content hash to another, by content hash, label and name.

        Those whose records are in the previous dataset as they are needed have no details.
        """
        where = "WHERE final = ? AND content_hash BETWEEN ? AND ? ORDER BY content_hash, label, name"
        return map(from_values, self._query(f"{_SELECT_USED} {where}", split, first, last))

    def contents(self) -> Iterator[Content]:
        """Yield each content with first and last label, the strictest split of the source, and the previous split.

        The first call determines the result, so all rows have to be added before.
        """
        ranks = " ".join(f"WHEN '{split}' THEN {strictness(split)}" for split in SPLITS)
        self.database.execute(f"""
            CREATE TABLE IF NOT EXISTS contents_found AS
            SELECT content_hash, MIN(label), MAX(label), MAX(CASE images.split {ranks} ELSE 0 END),
                COALESCE(previous.split, '')
            FROM images LEFT JOIN previous USING (content_hash) WHERE reason = ''
            GROUP BY content_hash ORDER BY content_hash""")  # noqa: S608 - constants
        for content_hash, first, last, rank, previous in self._query("SELECT * FROM contents_found ORDER BY rowid"):
            yield Content(
                content_hash=content_hash,
                labels=frozenset((first, last)),
                split=("", *SPLITS)[rank],
                previous=previous,
            )

    def set_splits(self, splits: Splits) -> None:
        """Store the split of each image that is used."""
        self.database.execute("CREATE TABLE finals (content_hash PRIMARY KEY, split) WITHOUT ROWID")
        found = ((content.content_hash, splits.of(content)) for content in self.contents())
        self.database.executemany("INSERT INTO finals VALUES (?, ?)", found)
        final = "SELECT split FROM finals WHERE finals.content_hash = images.content_hash"
        self.database.execute(f"UPDATE images SET final = ({final}) WHERE reason = ''")  # noqa: S608 - a constant
        self.database.execute(_INDEX)

    def extent(self, split: str, first: str, last: str) -> tuple[int, int]:
        """Return what `prefixes.layout` asks of a split's rows from one content hash to another."""
        query = f"""
            SELECT COALESCE(SUM(num_stored_bytes), 0) + {FIELD_BYTES} * COUNT(*),
                (MIN(content_hash) IS NOT NULL) + (MIN(content_hash) IS NOT MAX(content_hash))
            FROM images WHERE final = ? AND content_hash BETWEEN ? AND ?"""  # noqa: S608 - a constant
        ((num_bytes, num_hashes),) = self._query(query, split, first, last)
        return num_bytes, num_hashes

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

    def conflicts(self, limit: int) -> Iterator[tuple[str, list[tuple[str, int]]]]:
        """Yield the first contents under several classes, with the first name in each of the first classes."""
        labels = "SELECT content_hash, MIN(name) name FROM images WHERE reason = '' GROUP BY content_hash"
        query = f"{labels} HAVING COUNT(DISTINCT label) > 1 ORDER BY name LIMIT {limit}"
        names = f"""SELECT MIN(name), label FROM images WHERE reason = '' AND content_hash = ?
            GROUP BY label ORDER BY 1 LIMIT {limit}"""  # noqa: S608 - a constant
        for content_hash, _ in self._query(query):
            yield content_hash, list(self._query(names, content_hash))

    def _query(self, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
        return self.database.execute(query, values)


@contextlib.contextmanager
def open_rows() -> Iterator[Rows]:
    """Make rows and remove them at the end.

    Raises:
        OSError: The disk is full, or fails.
    """
    try:
        with contextlib.closing(Rows()) as rows:
            yield rows
    except sqlite3.Error as error:
        number = errno.ENOSPC if error.sqlite_errorcode == sqlite3.SQLITE_FULL else errno.EIO
        raise OSError(number, f"the temporary file of the rows cannot be written ({error})") from error


def to_values(row: Row) -> Values:
    """Return what a row contains, ready for JSON or SQLite."""
    return tuple(getattr(row, name) for name in _NAMES)


def from_values(values: Sequence[Any]) -> Row:
    """Return the row of the values of `COLUMNS`, and perhaps of its other attributes."""
    row = Row.__new__(Row)
    # The initialiser of a frozen class takes as long as all else here.
    vars(row).update(zip(_ALL_NAMES, values, strict=False))
    return row
