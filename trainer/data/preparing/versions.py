"""The versions that the bytes of a dataset depend on: of the format, the decoders and the code that uses them."""

import hashlib
import importlib.metadata
import json
import pathlib
from typing import Any

from PIL import features

from trainer.data import dataset, images
from trainer.data.preparing import examine, image_list, parts, prefixes, rows, shards
from trainer.data.preparing.quality import signatures
from trainer.data.stored import records

_DECODERS = ("pil", "jpg", "libjpeg_turbo", "zlib", "zlib_ng", "jpg_2000", "libtiff", "webp", "avif", "littlecms2")
_CODE = (images, examine, signatures, records, shards, prefixes, rows, parts, image_list)
"""Modules that decide what is stored of an image, and how: datasets and parts of another version are never found."""


def own() -> str:
    """Return a digest of all versions that the bytes of a dataset depend on: equal on machines that can share work."""
    return digest(used_versions())


def used_versions() -> dict[str, Any]:
    """Return the versions by what they are of."""
    return {
        "format": dataset.FORMAT_VERSION,
        "decoders": {name: features.version(name) for name in _DECODERS},
        "array_record": importlib.metadata.version("array_record"),
        "code": [hashlib.sha256(pathlib.Path(str(module.__file__)).read_bytes()).hexdigest() for module in _CODE],
    }


def digest(value: dict[str, Any]) -> str:
    """Return 32 hexadecimal digits for a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
