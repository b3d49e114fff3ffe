"""Finds pairs of images that may be near-duplicates, by an index over the signs of their low frequencies.

The frequencies are those of the middle of one image, and of windows of the other: what is in the middle of a copy that
was cropped or shifted by up to a tenth is in one of the windows of its original.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.preparing.quality import signatures
from trainer.data.preparing.quality.signatures import SIZE, Bytes, Flags, Floats

_BANDS = np.array(
    [[*range(8 * one, 8 * one + 8), *range(8 * other, 8 * other + 8)] for one in range(4) for other in range(one)]
)
"""Indices of the frequencies whose signs form a band: only even ones, so a mirror image has the same bands."""
_MARGIN = SIZE / 10
_WINDOWS = (
    (1.0, (0, -1, -0.5, 0.5, 1)),
    (0.95, (-0.25, 0.25)),
    (1.05, (-0.25, 0.25)),
    (0.9, (0, -0.5, 0.5)),
    (1.1, (0, -0.5, 0.5)),
)
"""Sizes of windows, and their shifts down and across, in margins."""
_MIN_CORRELATION = 0.8
_MAX_COMPARED = (32, 4)
"""Number of images before and after it in the same band that a whole image, and each window, is compared with.

Not all, for large bands: a series of a fixed camera is in one."""
_BATCH_SIZE = 128
"""Number of images that are looked up at a time, which bounds the memory."""
_Integers = npt.NDArray[np.int64]
_Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Pairs of images, each once."""

    pairs: _Integers
    """Both indices [P, 2]; the first one was looked up."""
    orientations: _Integers
    """How the first image is turned [P] to be like the second; see `oriented`."""
    is_complete: bool
    """False if a band has so many images that only some were compared."""


def oriented(images: Floats, orientations: _Integers) -> Floats:
    """Return images [P, S, S], transposed if bit 2 of their orientation is set, then upside down, then mirrored."""
    bits = [(orientations >> bit & 1 > 0)[:, np.newaxis, np.newaxis] for bit in range(3)]
    found = np.where(bits[2], images.transpose(0, 2, 1), images)
    found = np.where(bits[0], found[:, ::-1], found)
    return np.where(bits[1], found[:, :, ::-1], found)


def find(found: Bytes, is_query: Flags, *, are_others_paired: bool) -> Candidates:
    """Find pairs that may be near-duplicates.

    Args:
        found: Signatures [N, 968].
        is_query: Whether cropped and shifted copies of an image are looked for, too [N].
        are_others_paired: Whether to look for whole copies of the others among themselves.
    """
    transforms = _transforms()
    parts = [_pixels(found[some]) @ transforms[:, 0] for some in _batches(np.arange(len(found)))]
    middles = _normal(np.concatenate([np.zeros((0, 64), np.float32), *parts]))
    places = _places(middles)
    orders = np.argsort(places, axis=0, kind="stable")
    ordered = np.take_along_axis(places, orders, axis=0)
    pairs, likenesses, is_complete = [np.zeros((0, 3), np.int64)], [np.zeros(0, np.float32)], True
    # A turned copy is looked for only whole.
    turns = [(is_query, 0, None), *((np.ones(len(found), bool), turn, 1) for turn in (0, 1, 4, 5))]
    is_looked_up = is_query | are_others_paired
    for is_meant, turn, num_windows in turns:
        for some in _batches(np.flatnonzero(is_meant & is_looked_up)):
            images = oriented(signatures.thumbnails(found[some]), np.full(len(some), turn))
            windows = images.reshape(-1, SIZE * SIZE) @ transforms[:, :num_windows].reshape(SIZE * SIZE, -1)
            windows = _normal(windows.reshape(-1, 64))
            owners = np.repeat(some, len(windows) // len(some))
            most = np.tile(np.where(np.arange(len(windows) // len(some)), *_MAX_COMPARED[::-1]), len(some))
            for band, at in enumerate(_places(windows).T):
                first, nearest, last = (
                    np.searchsorted(ordered[:, band], each) for each in (np.floor(at), at, np.floor(at) + 1)
                )
                starts, ends = np.maximum(first, nearest - most), np.minimum(last, nearest + most)
                counts = ends - starts
                is_complete &= bool((counts == last - first).all())
                rows = np.repeat(np.arange(len(windows)), counts)
                others = orders[np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(len(rows)), band]
                is_new = (owners[rows] != others) & (is_query[others] <= is_query[owners[rows]])
                rows, others = rows[is_new], others[is_new]
                correlations, is_mirrored = _compare(windows[rows], middles[others])
                chosen = np.stack([owners[rows], others, turn + 2 * is_mirrored], axis=1)
                is_kept = correlations >= _MIN_CORRELATION
                pairs.append(chosen[is_kept])
                likenesses.append(correlations[is_kept])
    # Of several orientations of a pair, the most similar one.
    every = np.concatenate(pairs)[np.argsort(-np.concatenate(likenesses), kind="stable")]
    low, high = np.sort(every[:, :2], axis=1).T
    _, chosen = np.unique(low * len(found) + high, return_index=True)
    return Candidates(pairs=every[chosen, :2], orientations=every[chosen, 2], is_complete=is_complete)


def _pixels(found: Bytes) -> Floats:
    return signatures.thumbnails(found).reshape(-1, SIZE * SIZE)


def _batches(*several: _Integers) -> Iterator[_Integers]:
    for chosen in several:
        for start in range(0, len(chosen), _BATCH_SIZE):
            yield chosen[start : start + _BATCH_SIZE]


def _compare(first: Floats, second: Floats) -> tuple[Floats, Flags]:
    """Return the correlation [P] of frequencies, and whether it is that of the mirror image."""
    is_even = signatures.frequencies()[1] % 2 == 0
    products = first * second
    even, odd = products[:, is_even].sum(axis=1), products[:, ~is_even].sum(axis=1)
    return even + np.abs(odd), odd < 0


def _normal(found: Floats) -> Floats:
    lengths: Floats = np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1).astype(np.float32)
    return found / lengths


def _places(found: Floats) -> _Doubles:
    """Return the places [N, 6] in the index of frequencies [N, 64]: a band, and how strong one of them is."""
    signs = (found[:, _BANDS] > 0).reshape(-1, _BANDS.size)
    bands = np.ascontiguousarray(np.packbits(signs, axis=1)).view(np.uint16)
    strengths = np.abs(found[:, :24:4]).astype(np.float64)
    places: _Doubles = bands + strengths.clip(0, 0.999)
    return places


@functools.cache
def _transforms() -> Any:
    """Return the map of a thumbnail to the frequencies of its windows, float32 [900, W, 64]; the middle comes first."""
    middle, half = SIZE / 2, SIZE / 2 - _MARGIN
    places = [(zoom, _MARGIN * y, _MARGIN * x) for zoom, shifts in _WINDOWS for y in shifts for x in shifts]
    down, across = signatures.frequencies()
    found = []
    for zoom, y, x in places:
        rows, columns = (
            _cosines(middle + shift - half * zoom, middle + shift + half * zoom)[chosen]
            for shift, chosen in ((y, down), (x, across))
        )
        found.append((rows[:, :, np.newaxis] * columns[:, np.newaxis]).reshape(64, -1).T)
    return np.stack(found, axis=1).astype(np.float32)


def _cosines(start: float, end: float) -> _Doubles:
    """Return the cosines [K, 30] of a transform of a part of the pixels."""
    pixels, numbers = np.arange(SIZE), np.arange(max(map(max, signatures.frequencies())) + 1)
    covered = (np.minimum(pixels + 1, end) - np.maximum(pixels, start)).clip(0, 1)
    found: _Doubles = np.cos(np.pi * np.outer(numbers, (pixels + 0.5 - start) / (end - start))) * covered
    found[1:] -= covered * (found[1:].sum(axis=1, keepdims=True) / covered.sum())
    return found
