"""How an image looks: its low frequencies and its colours. Decision 0084 has the figures behind all numbers."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from trainer.data.preparing.quality.tones import Tones

_MAX_DISTANCE = 25
"""In ten thousandths: the frequencies of two images that look alike correlate to at least 0.9975."""
NUM_BANDS = 4
BAND_BYTES = 2
_MAX_COLOUR_DISTANCE = 12
"""Of 255, per channel: the same object in another colour is another image."""
_SIZE = 32
"""Height and width in pixels of the image whose frequencies are taken."""
_SCALE = 4096
_HALF = 32
"""Number of frequencies that are even across, and as many that are odd: a mirror image negates the odd ones."""
_NUMBER = 2 * _HALF
_LARGEST = 127
_BANDS = np.array([[*range(16)], [*range(16, 32)], [*range(8, 24)], [*range(8), *range(24, 32)]])
"""The frequencies whose signs are a band: of those even across, so a mirror image has the same bands."""
_BAND_END = NUM_BANDS * BAND_BYTES

_Integers = npt.NDArray[np.int64]


def hash_of(image: Image.Image) -> str:
    """Return 64 low frequencies of an image's brightness, one byte each, in hexadecimal.

    First come those that are even across, then the odd ones. Both go from low to high. Each byte is the signed root of
    a frequency's share in all of them. Sums are exact, so every machine gets the same bytes.
    """
    cosines, down, across = _frequencies()
    grey = np.asarray(image.convert("L").resize((_SIZE, _SIZE), Image.Resampling.BILINEAR), dtype=np.float64)
    # Whole numbers below 2**53, whatever the order of the additions.
    found = (cosines @ grey @ cosines.T)[down, across]
    length = math.sqrt(math.fsum((found * found).tolist())) or 1.0
    roots = np.copysign(np.rint(_LARGEST * np.sqrt(np.abs(found) / length)), found)
    return bytes(roots.astype(np.int8)).hex()


def look_of(perceptual_hash: str, tones: Tones) -> bytes:
    """Return the bands of a hash, the hash, and for each channel its share in the image's contrast, from 0 to 255.

    Args:
        perceptual_hash: As `hash_of` returns it.
        tones: Of the same image, which has some contrast.
    """
    found = bytes.fromhex(perceptual_hash)
    signs = np.frombuffer(found, dtype=np.int8)[_BANDS] > 0
    total = sum(tones.deviations)
    shares = bytes(int(255 * deviation / total) for deviation in tones.deviations)
    return np.packbits(signs).tobytes() + found + shares


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """Some looks, ready to be compared."""

    frequencies: npt.NDArray[np.float64]
    """Whole numbers [N, 64], so sums of their products are exact."""
    lengths: npt.NDArray[np.float64]
    """Of the frequencies [N]."""
    colours: _Integers
    """Shares [N, 3] of the channels, from 0 to 255."""


def unpack(looks: npt.NDArray[np.uint8]) -> Unpacked:
    """Return what looks [N, 75] consist of."""
    roots = looks[:, _BAND_END : _BAND_END + _NUMBER].view(np.int8).astype(np.float64)
    frequencies = roots * np.abs(roots)
    return Unpacked(
        frequencies=frequencies,
        lengths=np.sqrt((frequencies * frequencies).sum(axis=1)),
        colours=looks[:, _BAND_END + _NUMBER :].astype(np.int64),
    )


def compare(looks: Unpacked, one: _Integers, other: _Integers) -> tuple[_Integers, npt.NDArray[np.bool_]]:
    """Compare pairs of looks.

    Args:
        looks: All of them.
        one: Index [P] of the first of each pair.
        other: Index [P] of the second.

    Returns:
        By how many ten thousandths [P] they correlate less than equal ones, as they are or mirrored, whichever is
            nearer; and whether they look alike.
    """
    even, odd = (
        np.einsum("ij,ij->i", looks.frequencies[one, half], looks.frequencies[other, half])
        for half in (slice(_HALF), slice(_HALF, _NUMBER))
    )
    correlation = (even + np.abs(odd)) / np.maximum(looks.lengths[one] * looks.lengths[other], 1)
    distances = np.maximum(np.floor(10_000 * (1 - correlation)), 0).astype(np.int64)
    near_colours = (np.abs(looks.colours[one] - looks.colours[other]) <= _MAX_COLOUR_DISTANCE).all(axis=1)
    return distances, (distances <= _MAX_DISTANCE) & near_colours


@functools.cache
def _frequencies() -> tuple[npt.NDArray[np.float64], Any, Any]:
    """Return the cosines of a discrete cosine transform [K, 32], and the index of each frequency down and across."""
    chosen = []
    for parity in (0, 1):
        found = [(down, across) for down in range(_SIZE) for across in range(parity, _SIZE, 2) if down + across]
        chosen += sorted(found, key=lambda pair: (sum(pair), pair))[:_HALF]
    down, across = np.array(chosen).T
    angles = np.pi * np.outer(np.arange(max(down.max(), across.max()) + 1), 2 * np.arange(_SIZE) + 1) / (2 * _SIZE)
    return np.rint(_SCALE * np.cos(angles)), down, across
