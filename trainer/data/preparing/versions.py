"""The versions that the bytes of a dataset depend on: of its files, of what is stored, and of the decoders."""

import hashlib
import importlib.metadata
import json
from typing import Any

from PIL import features

from trainer.data import dataset

_DECODERS = ("pil", "jpg", "libjpeg_turbo", "zlib", "zlib_ng", "jpg_2000", "libtiff", "webp", "avif", "littlecms2")

FORMAT = 6
"""Raise it when the code stores other bytes of an image, a row, a list or a part: work in another is never found."""


def own() -> str:
    """Return a digest of all versions that the bytes of a dataset depend on: equal on machines that can share work."""
    return digest(used_versions())


def used_versions() -> dict[str, Any]:
    """Return the versions by what they are of."""
    return {
        "files": dataset.FORMAT_VERSION,
        "format": FORMAT,
        "decoders": {name: features.version(name) for name in _DECODERS},
        "array_record": importlib.metadata.version("array_record"),
    }


def digest(value: dict[str, Any]) -> str:
    """Return 32 hexadecimal digits for a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
