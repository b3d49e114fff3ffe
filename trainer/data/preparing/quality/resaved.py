"""Finds images that were saved again: other bytes of the same image, at distance 0 of their perceptual hashes."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.preparing.quality import near_duplicates
from trainer.data.preparing.quality.channels import channels_of
from trainer.data.stored.records import Figures

_BATCH_SIZE = 1024
_MIN_CORRELATION = 1 - 1 / 10_000
"""Above it, the distance of `signatures.compare` is 0."""
_NAMES = [field.name for field in dataclasses.fields(Figures)]


def hash_of(line: Mapping[str, Any], image_size: int) -> bytes:
    """Return the perceptual hash, 64 bytes, of a usable image; empty if it is too small or too flat to be compared.

    Args:
        line: The image's line in the list of images.
        image_size: Height and width of the prepared images in pixels.
    """
    figures = Figures(**{name: line[name] for name in _NAMES})
    is_compared = near_duplicates.is_comparable(figures, channels_of(figures, image_size))
    return bytes.fromhex(figures.perceptual_hash) if is_compared else b""


def is_resaved(asked: Sequence[bytes], known: bytes) -> npt.NDArray[np.bool_]:
    """Return whether each image [N] is one of the known images, saved again.

    Args:
        asked: What `hash_of` returned for each image.
        known: What `hash_of` returned for the known images, one after the other.
    """
    found = np.zeros(len(asked), dtype=bool)
    compared = np.flatnonzero([bool(each) for each in asked])
    one, other = _directions(b"".join(asked)), _directions(known)
    for start in range(0, len(one), _BATCH_SIZE):
        for begin in range(0, len(other), _BATCH_SIZE):
            correlations = one[start : start + _BATCH_SIZE] @ other[begin : begin + _BATCH_SIZE].T
            found[compared[start : start + _BATCH_SIZE]] |= correlations.max(axis=1) > _MIN_CORRELATION
    return found


def _directions(hashes: bytes) -> npt.NDArray[np.float32]:
    """Return the frequencies [N, 64] of hashes that follow each other, of length 1: their products are correlations."""
    roots = np.frombuffer(hashes, dtype=np.int8).reshape(-1, 64).astype(np.float32)
    found = roots * np.abs(roots)
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1))
