"""Different images that look alike: their pairs, how many images they are, and which are in two splits."""

import dataclasses
from typing import Any

from trainer.data.preparing.quality import look_index
from trainer.data.preparing.quality.kinds import is_flat
from trainer.data.preparing.quality.looks import look_of
from trainer.data.preparing.quality.tones import Tones
from trainer.data.preparing.rows import Row, Rows
from trainer.data.splits import SPLITS

_MIN_PIXELS = 64
"""Images with a shorter edge below it are too coarse: different ones look alike, such as digits."""
_MAX_PAIRS = 12
"""Of those across splits, and as many of the others."""
_NUM_TOGETHER = 512
_SCHEMA = "CREATE TABLE contents (look, content_hash, name, label, PRIMARY KEY (look, content_hash)) WITHOUT ROWID"
_LOOKS = f"""
CREATE TABLE looks AS SELECT ROW_NUMBER() OVER (ORDER BY look) id, look,
    {", ".join(f"SUM(split = '{split}') {split}" for split in SPLITS)}
FROM contents JOIN finals USING (content_hash) GROUP BY look ORDER BY look"""  # noqa: S608 - constants
_INDEX = "CREATE INDEX looks_by_id ON looks (id)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class NearDuplicates:
    """Different images that look alike. Equal ones, which are always in the same split, count as one."""

    num_across: int
    """Images of validation and test that look like an image of another split."""
    num_within: int
    """Images that look like another one of their split."""
    num_pairs: int
    is_complete: bool
    """False if there is so much alike that the numbers are lower bounds."""
    pairs: list[dict[str, Any]]
    """The first pairs, those across splits before the others, the nearest first."""


class Finder:
    """Collects the looks of images, and then finds those that are alike."""

    def __init__(self, rows: Rows, class_names: list[str]) -> None:
        self._database = rows.database
        self._class_names = class_names
        self._pending: list[tuple[bytes, str, str, int | None]] = []
        self._database.execute(_SCHEMA)

    def add(self, row: Row, tones: Tones) -> None:
        """Add an image that is used; of equal images the first represents all."""
        figures = row.figures
        if figures is None or min(figures.width, figures.height) < _MIN_PIXELS or is_flat(tones):
            return
        self._pending.append((look_of(figures.perceptual_hash, tones), figures.content_hash, row.name, row.label))
        if len(self._pending) == _NUM_TOGETHER:
            self._store()

    def find(self) -> NearDuplicates:
        """Find what looks alike, once the splits are set."""
        self._store()
        self._database.execute(_LOOKS)
        self._database.execute(_INDEX)
        alike = look_index.find(self._database, _MAX_PAIRS)
        num_across = num_within = 0
        for look, *counts in self._database.execute(f"SELECT id, {', '.join(SPLITS)} FROM looks"):  # noqa: S608
            others = int(alike.near[look - 1])
            own = sum(1 << number for number, count in enumerate(counts) if count)
            for number, count in enumerate(counts):
                num_within += count if others & 1 << number or count > 1 else 0
                num_across += count if number and (others | own) & ~(1 << number) else 0
        return NearDuplicates(
            num_across=num_across,
            num_within=num_within,
            num_pairs=alike.num_pairs,
            is_complete=alike.is_complete,
            pairs=[self._pair(*pair) for pair in alike.pairs()],
        )

    def _store(self) -> None:
        self._database.executemany("INSERT OR IGNORE INTO contents VALUES (?, ?, ?, ?)", self._pending)
        self._pending.clear()

    def _pair(self, one: int, other: int, is_across: bool, distance: int) -> dict[str, Any]:
        """Return the first two images, by name, of two looks or of one, in different splits or in the same."""
        candidates = [
            (first, second)
            for first in self._first(one)
            for second in self._first(other)
            if first["content_hash"] != second["content_hash"] and (first["split"] != second["split"]) == is_across
        ]
        pair = min(candidates, key=lambda pair: [image["name"] for image in pair])
        images = sorted(pair, key=lambda image: (SPLITS.index(image["split"]), image["name"]))
        return {"images": images, "similarity": round(1 - distance / 10_000, 4)}

    def _first(self, look: int) -> list[dict[str, Any]]:
        """Return the first two images of a look in each split."""
        query = """
            SELECT contents.name, contents.label, finals.split, content_hash
            FROM looks JOIN contents USING (look) JOIN finals USING (content_hash)
            WHERE id = ? AND finals.split = ? ORDER BY contents.name LIMIT 2"""
        return [
            {"name": name, "class": self._class_names[label], "split": split, "content_hash": content_hash}
            for wanted in SPLITS
            for name, label, split, content_hash in self._database.execute(query, (look, wanted))
        ]
