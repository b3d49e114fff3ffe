"""Pairs of images that look alike, by an index over bands of their hashes: each look is compared with few others."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trainer.data.preparing.quality import looks

_MAX_COMPARED = 32
"""Number of looks with the same band that each one is compared with, so that the time is never quadratic."""
_NUM_TOGETHER = 8192
_ID_BITS = 27
_DISTANCE_BITS = 6
"""Of the sort key of a pair: it is in one split or not, its distance, and the ids of its two looks."""

_Integers = npt.NDArray[np.int64]


@dataclass(kw_only=True)
class Alike:
    """What the index has found."""

    max_pairs: int
    num_pairs: int = 0
    """Pairs of different images, in one split or in two."""
    num_pairs_across: int = 0
    """Pairs in two splits."""
    is_complete: bool = True
    """False if there are so many looks with the same band that only some were compared."""
    keys: _Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The first pairs: those across splits before the others, the nearest first, as sort keys."""
    near: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    """Of each look, the splits that have another look like it, as bits; its index is its id minus 1."""

    def pairs(self) -> list[tuple[int, int, bool, int]]:
        """Return the ids of both looks of the first pairs, whether they are in two splits, and their distance."""
        mask = (1 << _ID_BITS) - 1
        return [
            (
                key >> _ID_BITS & mask,
                key & mask,
                not key >> (2 * _ID_BITS + _DISTANCE_BITS),
                key >> 2 * _ID_BITS & ((1 << _DISTANCE_BITS) - 1),
            )
            for key in self.keys.tolist()
        ]

    def add(self, one: "_Looks", first: _Integers, second: _Integers, distances: _Integers) -> None:
        """Count pairs of looks, given by their indices [P], and keep the first ones."""
        counts = one.counts[first], one.counts[second]
        within = (counts[0] * counts[1]).sum(axis=1)
        number = counts[0].sum(axis=1) * counts[1].sum(axis=1)
        self._count(number, within, (one.ids[first], one.ids[second]), distances)

    def add_equal(self, one: "_Looks") -> None:
        """Count the pairs of images that have the same look."""
        total = one.counts.sum(axis=1)
        several = np.flatnonzero(total > 1)
        total, counts, ids = total[several], one.counts[several], one.ids[several]
        within = (counts * (counts - 1) // 2).sum(axis=1)
        self._count(total * (total - 1) // 2, within, (ids, ids), np.zeros_like(ids))

    def _count(
        self, number: _Integers, within: _Integers, ids: tuple[_Integers, _Integers], distances: _Integers
    ) -> None:
        self.num_pairs += int(number.sum())
        self.num_pairs_across += int((number - within).sum())
        is_within = (number == within).astype(np.int64)
        key = (is_within << _DISTANCE_BITS | distances) << _ID_BITS
        keys = (key | np.minimum(*ids)) << _ID_BITS | np.maximum(*ids)
        keys = np.unique(np.concatenate([self.keys, keys]))
        num_across = int(np.searchsorted(keys, 1 << (2 * _ID_BITS + _DISTANCE_BITS)))
        self.keys = np.concatenate([part[: self.max_pairs] for part in (keys[:num_across], keys[num_across:])])


@dataclass(frozen=True, kw_only=True)
class _Looks:
    """Some looks, in the order of one of their bands."""

    ids: _Integers
    looks: npt.NDArray[np.uint8]
    counts: _Integers
    """Number of images [N, 3] in train, validation and test."""

    @property
    def bands(self) -> npt.NDArray[np.uint16]:
        """The bands [N, 4] of each look, which it begins with."""
        return np.ascontiguousarray(self.looks[:, : looks.NUM_BANDS * looks.BAND_BYTES]).view(np.uint16)

    @property
    def splits(self) -> npt.NDArray[np.uint8]:
        """The splits that have the look, as bits."""
        found: npt.NDArray[np.uint8] = ((self.counts > 0) @ np.array([1, 2, 4])).astype(np.uint8)
        return found


def find(database: sqlite3.Connection, max_pairs: int) -> Alike:
    """Find what looks alike.

    Args:
        database: Its table `looks` has the columns id, from 1 on, look, train, validation and test, which are the
            numbers of images in each split.
        max_pairs: Number of pairs to keep across splits, and as many within one; all are counted.
    """
    ((number,),) = database.execute("SELECT COUNT(*) FROM looks")
    found = Alike(max_pairs=max_pairs, near=np.zeros(number, dtype=np.uint8))
    for band in range(looks.NUM_BANDS):
        for chunk, num_before in _by_band(database, band):
            if band == 0:
                found.add_equal(_Looks(**{name: values[num_before:] for name, values in vars(chunk).items()}))
            _compare(found, chunk, num_before, band)
    return found


def _by_band(database: sqlite3.Connection, band: int) -> Iterator[tuple[_Looks, int]]:
    """Yield all looks in the order of a band, with the last ones of the chunk before, and the number of these."""
    query = "SELECT id, look, train, validation, test FROM looks ORDER BY SUBSTR(look, ?, ?), look"
    rows = database.execute(query, (1 + looks.BAND_BYTES * band, looks.BAND_BYTES))
    before: list[tuple[int, bytes, int, int, int]] = []
    while chunk := rows.fetchmany(_NUM_TOGETHER):
        together = before + chunk
        ids, found, *counts = zip(*together, strict=True)
        yield (
            _Looks(
                ids=np.array(ids, dtype=np.int64),
                looks=np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(found), -1),
                counts=np.array(counts, dtype=np.int64).T,
            ),
            len(before),
        )
        before = together[-_MAX_COMPARED - 1 :]


def _compare(found: Alike, chunk: _Looks, num_before: int, band: int) -> None:
    """Compare each look of a chunk with those before it that have the same band."""
    bands, splits, number = chunk.bands, chunk.splits, len(chunk.ids)
    unpacked = looks.unpack(chunk.looks)
    for offset in range(1, _MAX_COMPARED + 2):
        start = max(num_before, offset)
        second = start + np.flatnonzero(bands[start:, band] == bands[start - offset : number - offset, band])
        # In this order, what has no equal at some offset has none farther away.
        if not second.size:
            return
        if offset > _MAX_COMPARED:
            found.is_complete = False
            return
        first = second - offset
        distances, alike = looks.compare(unpacked, first, second)
        first, second, distances = first[alike], second[alike], distances[alike]
        np.bitwise_or.at(found.near, chunk.ids[first] - 1, splits[second])
        np.bitwise_or.at(found.near, chunk.ids[second] - 1, splits[first])
        # A pair is counted in the first of its common bands.
        new = ~(bands[first, :band] == bands[second, :band]).any(axis=1)
        found.add(chunk, first[new], second[new], distances[new])
