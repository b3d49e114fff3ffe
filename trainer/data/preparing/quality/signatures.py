"""What is kept of an image to recognise it: low frequencies, shares of its channels, and a thumbnail."""

import base64
import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from trainer.data.preparing.quality.kinds import Channels, is_flat

SIZE = 30
"""Height and width in pixels of a thumbnail."""
NUM_BYTES = 64 + 1 + 3 + SIZE * SIZE
"""Size of a signature: the hash, whether the image is small, the shares of the channels, and the thumbnail."""
SMALL = 64
"""Length of the shorter edge below which images are alike only if they are equal up to compression: digits differ in
little."""
MIN_PIXELS = 8
"""Length of the shorter edge below which all images look alike."""
_HASHED = 32
"""Height and width in pixels of the image that is transformed."""
_SCALE = 4096
_HALF = 32
"""Number of horizontally even frequencies, and of odd ones, which a mirror image negates."""
_LARGEST = 127

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def hash_of(image: Image.Image) -> str:
    """Return 64 low frequencies of an image's brightness, one byte each, in hexadecimal.

    Horizontally even frequencies come before odd ones, each from low to high. A byte is the signed root of a
    frequency's share in all of them. Sums are exact, so every machine computes the same bytes.
    """
    down, across = frequencies()
    angles = np.pi * np.outer(np.arange(max(*down, *across) + 1), 2 * np.arange(_HASHED) + 1) / (2 * _HASHED)
    cosines = np.rint(_SCALE * np.cos(angles))
    grey = np.asarray(image.convert("L").resize((_HASHED, _HASHED), Image.Resampling.BILINEAR), dtype=np.float64)
    # Whole numbers below 2**53, whatever the order of the additions.
    found = (cosines @ grey @ cosines.T)[down, across]
    length = math.sqrt(math.fsum((found * found).tolist())) or 1.0
    roots = np.copysign(np.rint(_LARGEST * np.sqrt(np.abs(found) / length)), found)
    return bytes(roots.astype(np.int8)).hex()


def appearance_of(image: Image.Image, channels: Channels) -> str:
    """Return each channel's share in the contrast and a thumbnail in grey, in base 64; nothing for a flat image."""
    if is_flat(channels):
        return ""
    shares = bytes(int(255 * each / sum(channels.deviations)) for each in channels.deviations)
    small = image.convert("L").resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    return base64.b64encode(shares + small.tobytes()).decode()


def signature_of(line: Mapping[str, Any]) -> bytes:
    """Return what recognises the image of a line of an image list; nothing if too little of it can be seen."""
    edge, appearance = min(line["width"], line["height"]), line.get("appearance")
    if edge < MIN_PIXELS or not appearance:
        return b""
    return bytes.fromhex(line["perceptual_hash"]) + bytes([edge < SMALL]) + base64.b64decode(appearance)


def unpacked(signatures: Iterable[bytes]) -> Bytes:
    """Return signatures as uint8 [N, 968]."""
    return np.frombuffer(b"".join(signatures), np.uint8).reshape(-1, NUM_BYTES)


def hashes(signatures: Bytes) -> npt.NDArray[np.int8]:
    """Return the hashes int8 [N, 64] in signatures."""
    return np.ascontiguousarray(signatures[:, :64]).view(np.int8)


def shares(signatures: Bytes) -> npt.NDArray[np.int16]:
    """Return each channel's share in the contrast, 0 to 255, int16 [N, 3]."""
    return signatures[:, 65:68].astype(np.int16)


def are_small(signatures: Bytes) -> npt.NDArray[np.bool_]:
    """Return whether the originals are small [N]."""
    return signatures[:, 64] > 0


def thumbnails(signatures: Bytes) -> Floats:
    """Return the thumbnails float32 [N, 30, 30] in signatures."""
    return signatures[:, 68:].reshape(-1, SIZE, SIZE).astype(np.float32)


@functools.cache
def frequencies() -> tuple[Any, Any]:
    """Return the vertical and the horizontal index of each of the 64 frequencies."""
    chosen = []
    for parity in (0, 1):
        found = [(down, across) for down in range(_HASHED) for across in range(parity, _HASHED, 2) if down + across]
        chosen += sorted(found, key=lambda pair: (sum(pair), pair))[:_HALF]
    down, across = np.array(chosen).T
    return down, across
