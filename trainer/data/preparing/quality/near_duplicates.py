"""Near-duplicates: different images with similar signatures, counted within and across splits."""

import csv
import dataclasses
import os
from typing import Any

from trainer.data.preparing.quality import signature_index
from trainer.data.preparing.quality.channels import Channels
from trainer.data.preparing.quality.kinds import is_flat
from trainer.data.preparing.quality.rejected import cell
from trainer.data.preparing.quality.signatures import signatures_of
from trainer.data.preparing.rows import Row, Rows
from trainer.data.splits import SPLITS
from trainer.data.stored.records import Figures

_MIN_PIXELS = 64
"""Length of the shorter edge below which images are not compared: different digits, for example, would match."""
_MAX_PAIRS = 12
"""Number of pairs to keep across splits, and as many within one split."""
_BATCH_SIZE = 512
_SCHEMA = """
CREATE TABLE contents
(signature, content_hash, name, label, PRIMARY KEY (signature, content_hash)) WITHOUT ROWID"""
_SIGNATURES = f"""
CREATE TABLE signatures AS SELECT ROW_NUMBER() OVER (ORDER BY signature) id, signature,
    {", ".join(f"SUM(split = '{split}') {split}" for split in SPLITS)}
FROM contents JOIN finals USING (content_hash) GROUP BY signature ORDER BY signature"""  # noqa: S608 - constants
FILE = "near_duplicates.csv"
_FIRSTS = """
CREATE TABLE firsts AS SELECT id, MIN(name) name, label, content_hash
FROM signatures JOIN contents USING (signature)
WHERE train + validation + test > 1 OR id IN (SELECT one FROM pairs UNION SELECT other FROM pairs) GROUP BY id"""
_LISTED = """
WITH listed (name, label, content_hash, other_name, other_label, other_hash, distance) AS (
    SELECT first.name, first.label, first.content_hash, second.name, second.label, second.content_hash, distance
    FROM pairs JOIN firsts AS first ON first.id IN (one, other)
    JOIN firsts AS second ON second.id = one + other - first.id AND first.name < second.name
    UNION ALL
    SELECT firsts.name, firsts.label, firsts.content_hash, contents.name, contents.label, contents.content_hash, 0
    FROM firsts JOIN signatures USING (id) JOIN contents USING (signature)
    WHERE contents.content_hash != firsts.content_hash)
SELECT listed.name, label, finals.split, other_name, other_label, others.split, distance
FROM listed JOIN finals USING (content_hash) JOIN finals AS others ON others.content_hash = other_hash
ORDER BY listed.name, other_name"""
_INDEX = "CREATE INDEX signatures_by_id ON signatures (id)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class NearDuplicates:
    """The near-duplicates of a dataset. Equal files, which are always in the same split, count as one image."""

    num_across: int
    """Number of validation and test images with a near-duplicate in another split."""
    num_within: int
    """Number of images with a near-duplicate in the same split."""
    num_pairs: int
    is_complete: bool
    """False if there are so many similar images that the numbers are lower bounds."""
    pairs: list[dict[str, Any]]
    """The first pairs: those across splits come first, then the most similar ones."""


class Finder:
    """Collects the signatures of images, and then finds near-duplicates."""

    def __init__(self, rows: Rows, class_names: list[str]) -> None:
        self._database = rows.database
        self._class_names = class_names
        self._pending: list[tuple[Row, Figures, Channels]] = []
        self._database.execute(_SCHEMA)

    def add(self, row: Row, channels: Channels) -> None:
        """Add a used image; the first of equal files represents all of them."""
        figures = row.figures
        if figures is None or min(figures.width, figures.height) < _MIN_PIXELS or is_flat(channels):
            return
        self._pending.append((row, figures, channels))
        if len(self._pending) == _BATCH_SIZE:
            self._store()

    def find(self) -> NearDuplicates:
        """Find all near-duplicates, once the splits are set."""
        self._store()
        self._database.execute(_SIGNATURES)
        self._database.execute(_INDEX)
        matches = signature_index.find(self._database, _MAX_PAIRS)
        num_across = num_within = 0
        found = self._database.execute(f"SELECT id, {', '.join(SPLITS)} FROM signatures")  # noqa: S608 - constants
        for signature, *counts in found:
            others = int(matches.near[signature - 1])
            own = sum(1 << number for number, count in enumerate(counts) if count)
            for number, count in enumerate(counts):
                num_within += count if others & 1 << number or count > 1 else 0
                num_across += count if number and (others | own) & ~(1 << number) else 0
        return NearDuplicates(
            num_across=num_across,
            num_within=num_within,
            num_pairs=matches.num_pairs,
            is_complete=matches.is_complete,
            pairs=[self._pair(*pair) for pair in matches.pairs()],
        )

    def write(self, directory: str | os.PathLike[str]) -> None:
        """Write the list of all pairs, once they are found; images of one signature only with the first of them."""
        self._database.execute(_FIRSTS)
        self._database.execute("CREATE INDEX firsts_by_id ON firsts (id)")
        with open(os.path.join(directory, FILE), "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            columns = ("name", "class", "split")
            writer.writerow([*columns, *(f"near_duplicate_{column}" for column in columns), "similarity"])
            for name, label, split, other, other_label, other_split, distance in self._database.execute(_LISTED):
                one, two = self._class_names[label], self._class_names[other_label]
                texts = map(cell, (name, one, split, other, two, other_split))
                writer.writerow([*texts, _similarity(distance)])

    def _store(self) -> None:
        found = signatures_of([(figures.perceptual_hash, channels) for _, figures, channels in self._pending])
        self._database.executemany(
            "INSERT OR IGNORE INTO contents VALUES (?, ?, ?, ?)",
            (
                (signature, row.content_hash, row.name, row.label)
                for signature, (row, _, _) in zip(found, self._pending, strict=True)
            ),
        )
        self._pending.clear()

    def _pair(self, one: int, other: int, is_across: bool, distance: int) -> dict[str, Any]:
        """Return the first two images, by name, of two equal or different signatures, across splits or within one."""
        candidates = [
            (first, second)
            for first in self._first(one)
            for second in self._first(other)
            if first["content_hash"] != second["content_hash"] and (first["split"] != second["split"]) == is_across
        ]
        pair = min(candidates, key=lambda pair: [image["name"] for image in pair])
        images = sorted(pair, key=lambda image: (SPLITS.index(image["split"]), image["name"]))
        return {"images": images, "similarity": _similarity(distance)}

    def _first(self, signature: int) -> list[dict[str, Any]]:
        """Return the first two images with a signature in each split."""
        query = """
            SELECT contents.name, contents.label, finals.split, content_hash
            FROM signatures JOIN contents USING (signature) JOIN finals USING (content_hash)
            WHERE id = ? AND finals.split = ? ORDER BY contents.name LIMIT 2"""
        return [
            {"name": name, "class": self._class_names[label], "split": split, "content_hash": content_hash}
            for wanted in SPLITS
            for name, label, split, content_hash in self._database.execute(query, (signature, wanted))
        ]


def _similarity(distance: int) -> float:
    return round(1 - distance / 10_000, 4)
