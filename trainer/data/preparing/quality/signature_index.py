"""Finds pairs of similar signatures by an index over their bands, which limits the comparisons of each signature."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.data.preparing.quality import signatures

_MAX_COMPARED = 32
"""Number of signatures of the same band that each one is compared with, so that the time is not quadratic."""
_BATCH_SIZE = 65_536
"""Number of pairs that are compared at a time, which bounds the memory."""

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Matches:
    """The pairs of similar signatures."""

    counts: _Integers
    """Number of images [N, 3] of each signature in train, validation and test."""
    pairs: _Integers
    """Both indices, the smaller one first, and the distance [P, 3] of each pair of different signatures."""
    near: npt.NDArray[np.uint8]
    """For each signature, the splits with a similar one, as bits."""
    is_complete: bool
    """False if a band has so many signatures that only some were compared."""

    def rank(self, max_pairs: int) -> tuple[int, list[tuple[int, int, bool, int]]]:
        """Return the number of pairs of different images, and the first pairs of signatures, which may be equal.

        Of each such pair, the indices of both signatures, whether it is across splits, and its distance. Those across
        splits come first, then the most similar ones.

        Args:
            max_pairs: Number of pairs to return across splits, and as many within one split.
        """
        total = self.counts.sum(axis=1)
        several = np.flatnonzero(total > 1)
        equal = np.stack([several, several, np.zeros_like(several)], axis=1)
        one, other, distances = np.concatenate([self.pairs, equal]).T
        is_equal = one == other
        within = (self.counts[one] * (self.counts[other] - is_equal[:, np.newaxis])).sum(axis=1)
        number = total[one] * (total[other] - is_equal)
        is_across = number > within
        order = np.lexsort((other, one, distances, ~is_across))
        num_across = int(is_across.sum())
        chosen = [*order[:num_across][:max_pairs], *order[num_across:][:max_pairs]]
        return int((number // (1 + is_equal)).sum()), [
            (int(one[each]), int(other[each]), bool(is_across[each]), int(distances[each])) for each in chosen
        ]


def find(found: npt.NDArray[np.uint8], counts: _Integers) -> Matches:
    """Find all pairs of similar signatures.

    Args:
        found: Different signatures [N, 83], sorted.
        counts: Number of images [N, 3] of each in train, validation and test.
    """
    bands = np.ascontiguousarray(found[:, : signatures.NUM_BANDS * signatures.BAND_BYTES]).view(np.uint16)
    splits = ((counts > 0) @ np.array([1, 2, 4])).astype(np.uint8)
    near, is_complete = np.zeros(len(found), dtype=np.uint8), True
    pairs = [np.zeros((0, 3), dtype=np.int64)]
    for band in range(signatures.NUM_BANDS):
        order = np.argsort(bands[:, band], kind="stable")
        for offset in range(1, _MAX_COMPARED + 2):
            first, second = order[:-offset], order[offset:]
            same = np.flatnonzero(bands[first, band] == bands[second, band])
            # Sorted by the band: without an equal band at this offset, there is none at a larger one.
            if not same.size:
                break
            if offset > _MAX_COMPARED:
                is_complete = False
                break
            for start in range(0, len(same), _BATCH_SIZE):
                some = same[start : start + _BATCH_SIZE]
                one, other = first[some], second[some]
                unpacked = signatures.unpack(found[np.concatenate([one, other])])
                distances, alike = signatures.compare(unpacked, np.arange(len(one)), len(one) + np.arange(len(one)))
                one, other, distances = one[alike], other[alike], distances[alike]
                np.bitwise_or.at(near, one, splits[other])
                np.bitwise_or.at(near, other, splits[one])
                # A pair is counted in the first of its common bands.
                new = ~(bands[one, :band] == bands[other, :band]).any(axis=1)
                pairs.append(np.stack([one, other, distances], axis=1)[new])
    return Matches(counts=counts, pairs=np.concatenate(pairs), near=near, is_complete=is_complete)
