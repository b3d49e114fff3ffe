"""Decides whether two images are near-duplicates, by their thumbnails: the only place that does.

Crops, shifts and changes of size are undone by least squares. What then differs in the worst place must be as little as
compression and interpolation leave there. A fixed camera needs nothing undone, so a small scratch counts as another
image.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.data.preparing.quality import candidates, signatures
from trainer.data.preparing.quality.signatures import SIZE, Bytes, Flags, Floats

_MAX_COLOUR_DISTANCE = 12
"""Limit per channel, of 255: the same object in another colour is not a near-duplicate."""
_MAX_DIFFERENCE = 0.85
"""Largest difference in the worst place, in the unit of `_differences`."""
_FEWEST_MOVED, _MOVED = 0.05, 0.2
"""Pixels of the thumbnail: a smaller crop or shift does not count, and one above the second leaves its full residue."""
_STILL = np.array([1, 0, 1, 0], np.float32)
_MOST_MOVED = np.array([0.18, 0.13 * SIZE] * 2, np.float32)
"""Zoom and shift down, and across."""
_MIN_CORRELATION = 0.95
"""Limit for the images after a crop or shift was undone."""
_PER_SLOPE, _PER_LEVEL = (0.25, 0.9), (1.5, 1.8)
"""What compression leaves, and how much more interpolation does: shares of the slopes around a pixel, and levels."""
_PLAIN = 6
"""Levels; images of less structure, such as two of the sky, are alike only if they differ in nothing but noise."""
_SAME_VIEW, _FEWEST_IN_SERIES = 0.97, 16
"""Correlation of images from a fixed camera, and how many of them are a series."""
_MAX_NOISE = 0.62
"""Root mean square of what a JPEG of quality 85 changes in a thumbnail; two shots of a camera differ by more."""
_BATCH_SIZE = 64
_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Near-duplicates."""

    pairs: _Integers
    """Both indices [P, 2], the smaller one first."""
    differences: Floats
    """How much they differ [P], from 0 to 0.85."""
    is_complete: bool
    """False if there are so many similar images that only some pairs were compared."""


def find(found: Bytes, is_query: Flags, *, are_others_paired: bool = True) -> Pairs:
    """Find the near-duplicates among images.

    Where a camera takes one view again and again, its images may differ in nothing but noise. In such a series, only
    images are near-duplicates that differ by less than noise.

    Args:
        found: Signatures [N, 968].
        is_query: Whether cropped and shifted copies of an image are looked for, too [N].
        are_others_paired: Whether to look for whole copies of the others among themselves.
    """
    chosen = candidates.find(found, is_query, are_others_paired=are_others_paired)
    colours = signatures.shares(found)
    one, other = chosen.pairs.T
    near = (np.abs(colours[one] - colours[other]) <= _MAX_COLOUR_DISTANCE).all(axis=1)
    pairs, orientations = chosen.pairs[near], chosen.orientations[near]
    noise, views, structure = _left_as_they_are(_oriented(found, pairs, orientations))
    is_same = views > _SAME_VIEW
    in_series = np.bincount(pairs[is_same].ravel(), minlength=len(found)) >= _FEWEST_IN_SERIES
    is_exact = (in_series[pairs].any(axis=1) & is_same) | (structure < _PLAIN)
    # Of a series, nearly all pairs differ in more than noise.
    left = np.flatnonzero(~is_exact | (noise <= _MAX_NOISE))
    differences = np.full(len(pairs), np.inf, np.float32)
    differences[left] = _as_they_are(_oriented(found, pairs[left], orientations[left]))
    is_small = signatures.are_small(found)[pairs].any(axis=1)
    left = np.flatnonzero((differences > _MAX_DIFFERENCE) & ~is_exact & ~is_small)
    differences[left] = _after_moves(_oriented(found, pairs[left], orientations[left]))
    alike = differences <= _MAX_DIFFERENCE
    return Pairs(pairs=np.sort(pairs[alike], axis=1), differences=differences[alike], is_complete=chosen.is_complete)


def _oriented(found: Bytes, pairs: _Integers, orientations: _Integers) -> Iterator[tuple[Floats, Floats]]:
    """Yield the thumbnails of some pairs at a time, the first ones turned like the second ones."""
    for start in range(0, len(pairs), _BATCH_SIZE):
        some = slice(start, start + _BATCH_SIZE)
        first, second = (signatures.thumbnails(found[each]) for each in pairs[some].T)
        yield candidates.oriented(first, orientations[some]), second


def _left_as_they_are(pairs: Iterable[tuple[Floats, Floats]]) -> Floats:
    """Return the noise, the correlation and the structure [3, P] of the images in pairs."""
    batches = [np.zeros((3, 0), np.float32)]
    for first, second in pairs:
        rest, _, views = _rest(first, np.ones_like(first, bool), second)
        batches.append(np.stack([np.sqrt((rest**2).mean(axis=(1, 2))), views, _structure(second)]))
    return np.concatenate(batches, axis=1)


def _as_they_are(pairs: Iterable[tuple[Floats, Floats]]) -> Floats:
    """Return the difference [P] of the images in pairs, whichever is the first."""
    batches = [np.zeros(0, np.float32)]
    for first, second in pairs:
        moves = np.tile(_STILL, (len(first), 1))
        batches.append(np.minimum(_differences(first, second, moves), _differences(second, first, moves)))
    return np.concatenate(batches)


def _after_moves(pairs: Iterable[tuple[Floats, Floats]]) -> Floats:
    """Return the difference [P] of the images in pairs after a crop or shift was undone; infinite without one."""
    batches = [np.zeros(0, np.float32)]
    for first, second in pairs:
        found, left = np.full(len(first), np.inf, np.float32), np.arange(len(first))
        moves = np.tile(_STILL, (len(first), 1))
        for num_smoothed, num_steps, correlation in ((3, 4, 0.9), (1, 4, _MIN_CORRELATION), (0, 2, _MIN_CORRELATION)):
            if left.size:
                parts = [first[left], second[left]]
                for _ in range(num_smoothed):
                    parts = [_smooth(each) for each in parts]
                moves[left] = _aligned(parts[0], parts[1], moves[left], num_steps)
                is_moved = _lengths(moves[left]) > _FEWEST_MOVED
                left = left[is_moved & (_rest(*_moved(parts[0], moves[left]), parts[1])[2] > correlation)]
        if left.size:
            found[left] = _differences(first[left], second[left], moves[left])
        batches.append(found)
    return np.concatenate(batches)


def _structure(images: Floats) -> Floats:
    """Return the standard deviation [P] of images from the nearest plane."""
    places = np.arange(SIZE, dtype=np.float32) - (SIZE - 1) / 2
    centred = images - images.mean(axis=(1, 2), keepdims=True)
    slopes = [(centred * each).sum(axis=(1, 2)) ** 2 for each in (places, places[:, np.newaxis])]
    left = (centred**2).sum(axis=(1, 2)) - sum(slopes) / (SIZE * (places**2).sum())
    found: Floats = np.sqrt(np.maximum(left, 0)) / SIZE
    return found


def _lengths(moves: Floats) -> Floats:
    """Return how far moves [P, 4] take the pixels at the edges, in pixels."""
    found: Floats = (np.abs(moves - _STILL) * np.array([SIZE / 2, 1, SIZE / 2, 1], np.float32)).max(axis=1)
    return found


def _aligned(first: Floats, second: Floats, moves: Floats, num_steps: int) -> Floats:
    """Return the moves of the first images that make them most like the second ones, by Gauss and Newton.

    Args:
        first: Images [P, S, S].
        second: Images [P, S, S].
        moves: Where to begin [P, 4]: zoom and shift down, and across.
        num_steps: Number of steps.
    """
    places = np.arange(SIZE, dtype=np.float32) - (SIZE - 1) / 2
    for _ in range(num_steps):
        shown, inside = _moved(first, moves)
        down, across = np.gradient(shown, axis=(1, 2))
        columns = [down * places[:, np.newaxis], down, across * places, across, shown, np.ones_like(shown)]
        slopes = (np.stack(columns, axis=-1) * inside[..., np.newaxis]).reshape(len(first), -1, len(columns))
        left = ((second - shown) * inside).reshape(len(first), -1, 1)
        normal = (slopes.transpose(0, 2, 1) @ slopes).astype(np.float64) + 1e-3 * np.eye(len(columns))
        moves = moves + np.linalg.solve(normal, slopes.transpose(0, 2, 1) @ left)[:, :4, 0]
        moves = np.clip(moves, _STILL - _MOST_MOVED, _STILL + _MOST_MOVED).astype(np.float32)
    return moves


def _moved(images: Floats, moves: Floats) -> tuple[Floats, Flags]:
    """Return images after a zoom and shift, by cubic interpolation, and which pixels [P, S, S] are known."""
    pixels = np.arange(SIZE, dtype=np.float32)
    weights, inside = [], []
    for zoom, shift in (moves[:, :2].T, moves[:, 2:].T):
        at = (pixels - (SIZE - 1) / 2) * zoom[:, np.newaxis] + (SIZE - 1) / 2 + shift[:, np.newaxis]
        inside.append((at >= -0.5) & (at <= SIZE - 0.5))
        far = np.abs(at.clip(0, SIZE - 1)[..., np.newaxis] - pixels)
        near = 1 + far**2 * (1.5 * far - 2.5)
        found = np.where(far < 1, near, np.where(far < 2, 2 + far * (far * (2.5 - 0.5 * far) - 4), 0))
        weights.append(found / found.sum(axis=2, keepdims=True))
    down, across = weights
    return down @ images @ across.transpose(0, 2, 1), inside[0][:, :, np.newaxis] & inside[1][:, np.newaxis]


def _rest(shown: Floats, inside: Flags, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Return what the moved and brightened first image leaves of the second one, with the gain and the correlation."""
    number = inside.sum(axis=(1, 2), keepdims=True)
    one, two = ((each - (each * inside).sum(axis=(1, 2), keepdims=True) / number) * inside for each in (shown, second))
    product, first_square, second_square = ((a * b).sum(axis=(1, 2)) for a, b in ((one, two), (one, one), (two, two)))
    gain = product / np.maximum(first_square, 1)
    correlation = product / np.sqrt(np.maximum(first_square * second_square, 1))
    return two - gain[:, np.newaxis, np.newaxis] * one, gain, correlation


def _differences(first: Floats, second: Floats, moves: Floats) -> Floats:
    """Return how much moved images differ in the worst place [P], measured by what may differ there."""
    shown, inside = _moved(first, moves)
    rest, gain, _ = _rest(shown, inside, second)
    slopes = (
        _around(_around(np.square(np.gradient(shown, axis=(1, 2))).sum(axis=0))) * (gain**2)[:, np.newaxis, np.newaxis]
    )
    extent = np.minimum(_lengths(moves) / _MOVED, 1)[:, np.newaxis, np.newaxis]
    share, level = (least + more * extent for least, more in (_PER_SLOPE, _PER_LEVEL))
    whole = _around(inside.astype(np.float32)) > 0.999
    found = _around(_smooth(rest) ** 2) / (share**2 * slopes + level**2)
    worst: Floats = np.sqrt((found * whole).max(axis=(1, 2)))
    return np.where((gain > 0.5) & (gain < 2), worst, np.inf).astype(np.float32)


def _smooth(images: Floats) -> Floats:
    return _filtered(images, (0.25, 0.5, 0.25))


def _around(images: Floats) -> Floats:
    return _filtered(images, (1 / 3, 1 / 3, 1 / 3))


def _filtered(images: Floats, weights: tuple[float, float, float]) -> Floats:
    """Return the weighted means of three by three pixels; at the edges, the last ones are repeated."""
    for axis in (1, 2):
        padded = np.pad(images, [(0, 0), *((1, 1) if each == axis else (0, 0) for each in (1, 2))], mode="edge")
        images = sum(  # type: ignore[assignment]  # of floats
            weight * np.take(padded, range(start, start + SIZE), axis=axis) for start, weight in enumerate(weights)
        )
    return images
