"""Finds pairs of similar signatures by an index over their bands, which limits the comparisons of each signature."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trainer.data.preparing.quality import signatures

_MAX_COMPARED = 32
"""Number of signatures of the same band that each one is compared with, so that the time is not quadratic."""
_BATCH_SIZE = 8192
_ID_BITS = 27
_DISTANCE_BITS = 6
"""Layout of a pair's sort key: whether it is in one split, its distance, and the ids of its two signatures."""

_Integers = npt.NDArray[np.int64]


@dataclass(kw_only=True)
class Matches:
    """The pairs that the index has found."""

    max_pairs: int
    num_pairs: int = 0
    """Number of pairs of different images, in one split or in two."""
    is_complete: bool = True
    """False if a band has so many signatures that only some were compared."""
    keys: _Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Sort keys of the first pairs: those across splits come first, then the most similar ones."""
    near: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    """For each signature, the splits with a similar one, as bits; the index is the id minus 1."""

    def pairs(self) -> list[tuple[int, int, bool, int]]:
        """Return the first pairs: the ids of both signatures, whether they are in two splits, and their distance."""
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

    def add(self, one: "_Signatures", first: _Integers, second: _Integers, distances: _Integers) -> None:
        """Count pairs of signatures, given by their indices [P], and keep the first ones."""
        counts = one.counts[first], one.counts[second]
        within = (counts[0] * counts[1]).sum(axis=1)
        number = counts[0].sum(axis=1) * counts[1].sum(axis=1)
        self._count(number, within, (one.ids[first], one.ids[second]), distances)

    def add_equal(self, one: "_Signatures") -> None:
        """Count the pairs of images that have the same signature."""
        total = one.counts.sum(axis=1)
        several = np.flatnonzero(total > 1)
        total, counts, ids = total[several], one.counts[several], one.ids[several]
        within = (counts * (counts - 1) // 2).sum(axis=1)
        self._count(total * (total - 1) // 2, within, (ids, ids), np.zeros_like(ids))

    def _count(
        self, number: _Integers, within: _Integers, ids: tuple[_Integers, _Integers], distances: _Integers
    ) -> None:
        self.num_pairs += int(number.sum())
        is_within = (number == within).astype(np.int64)
        key = (is_within << _DISTANCE_BITS | distances) << _ID_BITS
        keys = (key | np.minimum(*ids)) << _ID_BITS | np.maximum(*ids)
        keys = np.unique(np.concatenate([self.keys, keys]))
        num_across = int(np.searchsorted(keys, 1 << (2 * _ID_BITS + _DISTANCE_BITS)))
        self.keys = np.concatenate([part[: self.max_pairs] for part in (keys[:num_across], keys[num_across:])])


@dataclass(frozen=True, kw_only=True)
class _Signatures:
    """Some signatures, sorted by one of their bands."""

    ids: _Integers
    signatures: npt.NDArray[np.uint8]
    counts: _Integers
    """Number of images [N, 3] in train, validation and test."""

    @property
    def bands(self) -> npt.NDArray[np.uint16]:
        """The bands [N, 4], which are the first bytes of each signature."""
        return np.ascontiguousarray(self.signatures[:, : signatures.NUM_BANDS * signatures.BAND_BYTES]).view(np.uint16)

    @property
    def splits(self) -> npt.NDArray[np.uint8]:
        """The splits in which each signature occurs, as bits."""
        found: npt.NDArray[np.uint8] = ((self.counts > 0) @ np.array([1, 2, 4])).astype(np.uint8)
        return found


def find(database: sqlite3.Connection, max_pairs: int) -> Matches:
    """Find all pairs of similar signatures, and put them into a new table `pairs` with ids and distance.

    Args:
        database: Its table `signatures` has the columns id (from 1), signature, train, validation and test. The last
            three are the numbers of images in each split.
        max_pairs: Number of pairs to keep across splits, and as many within one split; all are counted.
    """
    ((number,),) = database.execute("SELECT COUNT(*) FROM signatures")
    database.execute("CREATE TABLE pairs (one, other, distance)")
    found = Matches(max_pairs=max_pairs, near=np.zeros(number, dtype=np.uint8))
    for band in range(signatures.NUM_BANDS):
        for chunk, num_before in _by_band(database, band):
            if band == 0:
                found.add_equal(_Signatures(**{name: values[num_before:] for name, values in vars(chunk).items()}))
            for pairs in _compare(found, chunk, num_before, band):
                database.executemany("INSERT INTO pairs VALUES (?, ?, ?)", zip(*pairs, strict=True))
    return found


def _by_band(database: sqlite3.Connection, band: int) -> Iterator[tuple[_Signatures, int]]:
    """Yield all signatures sorted by a band, each chunk with the last ones of the previous chunk and their number."""
    query = "SELECT id, signature, train, validation, test FROM signatures ORDER BY SUBSTR(signature, ?, ?), signature"
    rows = database.execute(query, (1 + signatures.BAND_BYTES * band, signatures.BAND_BYTES))
    before: list[tuple[int, bytes, int, int, int]] = []
    while chunk := rows.fetchmany(_BATCH_SIZE):
        together = before + chunk
        ids, found, *counts = zip(*together, strict=True)
        yield (
            _Signatures(
                ids=np.array(ids, dtype=np.int64),
                signatures=np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(found), -1),
                counts=np.array(counts, dtype=np.int64).T,
            ),
            len(before),
        )
        before = together[-_MAX_COMPARED - 1 :]


def _compare(found: Matches, chunk: _Signatures, num_before: int, band: int) -> Iterator[tuple[list[int], ...]]:
    """Compare each signature of a chunk with the preceding ones of the same band.

    Yields:
        Both ids and the distance of each new pair, a list of each.
    """
    bands, splits, number = chunk.bands, chunk.splits, len(chunk.ids)
    unpacked = signatures.unpack(chunk.signatures)
    for offset in range(1, _MAX_COMPARED + 2):
        start = max(num_before, offset)
        second = start + np.flatnonzero(bands[start:, band] == bands[start - offset : number - offset, band])
        # The chunk is sorted by the band: without an equal band at this offset, there is none at a larger one.
        if not second.size:
            return
        if offset > _MAX_COMPARED:
            found.is_complete = False
            return
        first = second - offset
        distances, alike = signatures.compare(unpacked, first, second)
        first, second, distances = first[alike], second[alike], distances[alike]
        np.bitwise_or.at(found.near, chunk.ids[first] - 1, splits[second])
        np.bitwise_or.at(found.near, chunk.ids[second] - 1, splits[first])
        # A pair is counted in the first of its common bands.
        new = ~(bands[first, :band] == bands[second, :band]).any(axis=1)
        first, second, distances = first[new], second[new], distances[new]
        found.add(chunk, first, second, distances)
        yield tuple(values.tolist() for values in (chunk.ids[first], chunk.ids[second], distances))
