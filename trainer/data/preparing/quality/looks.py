"""How an image looks: a hash of its brightness, and its colours. Decision 0084 has the figures behind all numbers."""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from trainer.data.preparing.quality.tones import Tones

MAX_DISTANCE = 16
"""Number of bits, of 256, in which the hashes of two images that look alike may differ."""
NUM_HASH_BYTES = 32
_MAX_COLOUR_DISTANCE = 12
"""Of 255, per channel: the same object in another colour is another image."""
_SIZE = 32
"""Height and width in pixels of the image whose frequencies are the hash."""
_SCALE = 4096
_BITS_OF_PARITY = 128
"""Number of frequencies that are even across, and as many that are odd: a mirror image negates the odd ones."""

_Integers = npt.NDArray[np.int64]


def hash_of(image: Image.Image) -> str:
    """Return the signs of 256 low frequencies of an image's brightness, in hexadecimal.

    First come those that are even across, which a mirror image shares, then the odd ones. Both go from low to high.
    All arithmetic is on whole numbers below 2**53, so every machine gets the same bits.
    """
    cosines, down, across = _frequencies()
    grey = np.asarray(image.convert("L").resize((_SIZE, _SIZE), Image.Resampling.BILINEAR), dtype=np.float64)
    signs = (cosines @ grey @ cosines.T)[down, across] > 0
    return np.packbits(signs).tobytes().hex()


def look_of(perceptual_hash: str, tones: Tones) -> bytes:
    """Return the hash, and for each channel its share in the image's contrast, from 0 to 255.

    Args:
        perceptual_hash: As `hash_of` returns it.
        tones: Of the same image, which has some contrast.
    """
    total = sum(tones.deviations)
    return bytes.fromhex(perceptual_hash) + bytes(int(255 * deviation / total) for deviation in tones.deviations)


def compare(looks: npt.NDArray[np.uint8], one: _Integers, other: _Integers) -> tuple[_Integers, npt.NDArray[np.bool_]]:
    """Compare pairs of looks.

    Args:
        looks: [N, 35].
        one: Index [P] of the first of each pair.
        other: Index [P] of the second.

    Returns:
        The number of bits [P] in which they differ, as they are or mirrored, whichever is less; and whether they look
            alike.
    """
    first, second = looks[one], looks[other]
    bits: _Integers = np.bitwise_count(first[:, :NUM_HASH_BYTES] ^ second[:, :NUM_HASH_BYTES]).astype(np.int64)
    odd = bits[:, NUM_HASH_BYTES // 2 :].sum(axis=1)
    distances = bits[:, : NUM_HASH_BYTES // 2].sum(axis=1) + np.minimum(odd, _BITS_OF_PARITY - odd)
    colours = [look[:, NUM_HASH_BYTES:].astype(np.int64) for look in (first, second)]
    near_colours = (np.abs(colours[0] - colours[1]) <= _MAX_COLOUR_DISTANCE).all(axis=1)
    return distances, (distances <= MAX_DISTANCE) & near_colours


@functools.cache
def _frequencies() -> tuple[npt.NDArray[np.float64], Any, Any]:
    """Return the cosines of a discrete cosine transform [K, 32], and the index of each bit down and across."""
    chosen = []
    for parity in (0, 1):
        found = [(down, across) for down in range(_SIZE) for across in range(parity, _SIZE, 2) if down + across]
        chosen += sorted(found, key=lambda pair: (sum(pair), pair))[:_BITS_OF_PARITY]
    down, across = np.array(chosen).T
    angles = np.pi * np.outer(np.arange(max(down.max(), across.max()) + 1), 2 * np.arange(_SIZE) + 1) / (2 * _SIZE)
    return np.rint(_SCALE * np.cos(angles)), down, across
