"""Signatures of images: low frequencies and colours. Decision 0084 explains the constants."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from trainer.data.preparing.quality.channels import Channels

_MAX_DISTANCE = 25
"""In ten thousandths: the frequencies of near-duplicates have a correlation of at least 0.9975."""
NUM_BANDS = 8
BAND_BYTES = 2
_MAX_COLOUR_DISTANCE = 12
"""Of 255, per channel: the same object in another colour is not a near-duplicate."""
_SIZE = 32
"""Height and width in pixels of the image that is transformed."""
_SCALE = 4096
_HALF = 32
"""Number of horizontally even frequencies, and of odd ones, which a mirror image negates."""
_NUMBER = 2 * _HALF
_LARGEST = 127
_BANDS = np.array([[*range(16)], [*range(16, 32)], [*range(8, 24)], [*range(8), *range(24, 32)]])
"""Indices of the frequencies whose signs form a band: only even ones, so a mirror image has the same bands."""
_TURNED_BANDS = np.array([[*range(16)], [*range(13, 29)], [*range(8, 24)], [*range(8), *range(21, 29)]])
"""Of those in one of the eight orientations: without the last three, whose counterparts are not in the hash."""
_BAND_END = NUM_BANDS * BAND_BYTES
NUM_BYTES = _BAND_END + _NUMBER + 3
"""Size of a signature."""

_Integers = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


def hash_of(image: Image.Image) -> str:
    """Return 64 low frequencies of an image's brightness, one byte each, in hexadecimal.

    Horizontally even frequencies come before odd ones, each from low to high. A byte is the signed root of a
    frequency's share in all of them. Sums are exact, so every machine computes the same bytes.
    """
    cosines, down, across = _frequencies()
    grey = np.asarray(image.convert("L").resize((_SIZE, _SIZE), Image.Resampling.BILINEAR), dtype=np.float64)
    # Whole numbers below 2**53, whatever the order of the additions.
    found = (cosines @ grey @ cosines.T)[down, across]
    length = math.sqrt(math.fsum((found * found).tolist())) or 1.0
    roots = np.copysign(np.rint(_LARGEST * np.sqrt(np.abs(found) / length)), found)
    return bytes(roots.astype(np.int8)).hex()


def signatures_of(images: Sequence[tuple[str, Channels]]) -> list[bytes]:
    """Return for each image the bands of its hash, the hash, and each channel's share in the contrast, 0 to 255.

    Args:
        images: Of each, what `hash_of` returns, and its channels, which must have some contrast.
    """
    hashes = np.frombuffer(bytes.fromhex("".join(found for found, _ in images)), dtype=np.int8).reshape(-1, _NUMBER)
    deviations = np.array([channels.deviations for _, channels in images], dtype=np.float64).reshape(-1, 3)
    # In this order, because the order of additions has an effect.
    total = deviations[:, 0] + deviations[:, 1] + deviations[:, 2]
    shares = (255 * deviations / total[:, np.newaxis]).astype(np.uint8)
    signs = np.concatenate([hashes[:, _BANDS], _in_one_orientation(hashes)[:, _TURNED_BANDS]], axis=1) > 0
    bands = np.packbits(signs.reshape(len(images), _BAND_END * 8), axis=1)
    return [row.tobytes() for row in np.concatenate([bands, hashes.view(np.uint8), shares], axis=1)]


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """Some signatures in the form in which they are compared."""

    frequencies: _Floats
    """Whole numbers [N, 64], so sums of their products are exact."""
    lengths: _Floats
    """Euclidean norms [N] of the frequencies."""
    turned_lengths: _Floats
    """Euclidean norms [N] of those whose counterparts in a turned image are in the hash, too."""
    colours: _Integers
    """Shares [N, 3] of the channels, from 0 to 255."""


def unpack(signatures: npt.NDArray[np.uint8]) -> Unpacked:
    """Return the components of signatures [N, 83]."""
    roots = signatures[:, _BAND_END : _BAND_END + _NUMBER].view(np.int8).astype(np.float64)
    frequencies = roots * np.abs(roots)
    return Unpacked(
        frequencies=frequencies,
        lengths=np.sqrt((frequencies * frequencies).sum(axis=1)),
        turned_lengths=np.sqrt((frequencies * frequencies)[:, _turned()[0]].sum(axis=1)),
        colours=signatures[:, _BAND_END + _NUMBER :].astype(np.int64),
    )


def compare(signatures: Unpacked, one: _Integers, other: _Integers) -> tuple[_Integers, npt.NDArray[np.bool_]]:
    """Compare pairs of signatures.

    Args:
        signatures: All of them.
        one: Index [P] of the first of each pair.
        other: Index [P] of the second.

    Returns:
        Distances [P], 10,000 times (1 - correlation) of one image and the other in the orientation, of eight, that is
            nearest; and whether the pairs are near-duplicates [P].
    """
    first, second = signatures.frequencies[one], signatures.frequencies[other]
    known, counterparts = _turned()
    # Whole numbers, so sums of their products are exact.
    as_it_is = ((first * second) @ _flips()).max(axis=1)
    turned = ((first[:, known] * second[:, counterparts]) @ _flips()[known]).max(axis=1)
    correlation = np.maximum(
        as_it_is / np.maximum(signatures.lengths[one] * signatures.lengths[other], 1),
        turned / np.maximum(signatures.turned_lengths[one] * signatures.turned_lengths[other], 1),
    )
    distances = np.maximum(np.floor(10_000 * (1 - correlation)), 0).astype(np.int64)
    near_colours = (np.abs(signatures.colours[one] - signatures.colours[other]) <= _MAX_COLOUR_DISTANCE).all(axis=1)
    return distances, (distances <= _MAX_DISTANCE) & near_colours


@functools.cache
def _flips() -> Any:
    """Return the signs [64, 4] of the frequencies in the four flips, which negate those that are odd down or across."""
    _, down, across = _frequencies()
    vertical, horizontal = (-1) ** down, (-1) ** across
    return np.stack([vertical**2, vertical, horizontal, vertical * horizontal], axis=1)


def _in_one_orientation(hashes: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return hashes [N, 64] as they are in one of the eight orientations, up to a mirror image.

    That is the one in which more changes across than down, and the strongest frequency that is odd down is positive.
    """
    _, down, across = _frequencies()
    known, counterparts = _turned()
    squares = hashes[:, known].astype(np.int64) ** 2
    # What changes across minus what changes down.
    is_turned = squares @ np.sign(across - down)[known] < 0
    turned = np.zeros_like(hashes)
    turned[:, known] = hashes[:, counterparts]
    found = np.where(is_turned[:, np.newaxis], turned, hashes)
    odd = np.flatnonzero((down % 2 == 1) & (across % 2 == 0))
    strongest = odd[np.abs(found[:, odd].astype(np.int64)).argmax(axis=1)]
    signs = np.sign(np.take_along_axis(found, strongest[:, np.newaxis], axis=1))
    return np.where(down % 2 == 1, found * signs, found)


@functools.cache
def _turned() -> tuple[Any, Any]:
    """Return the indices of the frequencies whose counterparts in a turned image are in the hash, and of those."""
    _, down, across = _frequencies()
    index = {pair: number for number, pair in enumerate(zip(down, across, strict=True))}
    pairs = [(number, index[right, under]) for (under, right), number in index.items() if (right, under) in index]
    known, counterparts = np.array(pairs).T
    return known, counterparts


@functools.cache
def _frequencies() -> tuple[_Floats, Any, Any]:
    """Return the cosines of a discrete cosine transform [K, 32], and each frequency's vertical and horizontal index."""
    chosen = []
    for parity in (0, 1):
        found = [(down, across) for down in range(_SIZE) for across in range(parity, _SIZE, 2) if down + across]
        chosen += sorted(found, key=lambda pair: (sum(pair), pair))[:_HALF]
    down, across = np.array(chosen).T
    angles = np.pi * np.outer(np.arange(max(down.max(), across.max()) + 1), 2 * np.arange(_SIZE) + 1) / (2 * _SIZE)
    return np.rint(_SCALE * np.cos(angles)), down, across
