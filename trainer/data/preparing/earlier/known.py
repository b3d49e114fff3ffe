"""What is known of images already, from the previous dataset and from parts of a killed attempt, on disk."""

import dataclasses
import json
from collections.abc import Iterable, Iterator

from trainer.data.preparing.rows import Row, from_values, temporary_database, to_values
from trainer.data.sources.source import Identity, SourceImage

SETTLING_NS = 100_000_000
"""A file may change twice while the clock of its file system stands still, at most some hundredths of a second."""
_SCHEMA = """
CREATE TABLE listed (name, identity, split, label, content_hash, details);
CREATE TABLE known (name, identity, origin, offset, details);
"""
_NUMBERED = """
INSERT INTO known
SELECT name, identity, CASE WHEN content_hash IS NULL THEN '' ELSE split || ':' || label END,
    ROW_NUMBER() OVER (PARTITION BY split ORDER BY content_hash, label, name) - 1, details FROM listed
"""


class Known:
    """Rows by the name and the identity of their image."""

    def __init__(self) -> None:
        """Make an empty file, which vanishes with the process, even a killed one."""
        self._database = temporary_database(_SCHEMA)

    def close(self) -> None:
        """Remove the file."""
        self._database.close()

    def add_previous(self, rows: Iterable[Row], *, began_ns: int, is_trusted: bool) -> None:
        """Add all rows of the previous dataset, once.

        Args:
            rows: With the split of each image that is used as `final`.
            began_ns: Time before the first image of that dataset was read.
            is_trusted: Whether its rows are found; otherwise only its splits are known.
        """
        values = (
            (
                row.name,
                _key(row.identity, began_ns),
                row.final,
                row.label,
                row.figures.content_hash if row.figures else None,
                json.dumps(to_values(row)),
            )
            for row in rows
        )
        self._database.executemany("INSERT INTO listed VALUES (?, ?, ?, ?, ?, ?)", values)
        if not is_trusted:
            return
        # Records lie in this order, so that the number finds one without a search.
        self._database.execute(_NUMBERED)
        self._database.execute("CREATE INDEX by_name ON known (name, identity)")

    def add_part(self, rows: Iterable[Row], *, began_ns: int) -> None:
        """Add the rows of a part, whose offsets are in the file of prepared images.

        Args:
            rows: In any order.
            began_ns: Time before the first image of the part was read.
        """
        values = ((row.name, _key(row.identity, began_ns), "", row.offset, json.dumps(to_values(row))) for row in rows)
        self._database.executemany("INSERT INTO known VALUES (?, ?, ?, ?, ?)", values)

    def splits(self) -> Iterator[tuple[str, str]]:
        """Yield the content hash and the split of each image of the previous dataset."""
        yield from self._database.execute("SELECT content_hash, split FROM listed WHERE content_hash IS NOT NULL")

    def find(self, image: SourceImage, identity: Identity) -> Row | None:
        """Return the row of an image, with its label and split of today; None if it has to be read."""
        query = "SELECT origin, offset, details FROM known WHERE name = ? AND identity = ?"
        found = self._database.execute(query, (image.name, json.dumps(identity, sort_keys=True))).fetchone()
        if found is None or not identity:
            return None
        origin, offset, details = found
        row = from_values(json.loads(details))
        return dataclasses.replace(row, label=image.label, split=image.split, origin=origin, offset=offset)


def _key(identity: Identity, began_ns: int) -> str | None:
    """Return what is compared of an identity; None if the image may have changed without a trace in it."""
    is_settled = int(identity.get("ctime_ns", 0)) < began_ns - SETTLING_NS
    return json.dumps(identity, sort_keys=True) if identity and is_settled else None
