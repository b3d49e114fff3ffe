"""What `dataset.json` has to contain; the file may have been edited, cut off or written by another program."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import quoted
from trainer.data.splits import SPLITS

NAME = "images"
"""Name of the dataset in TensorFlow Datasets' metadata and in the names of the shards."""
_MAX_IMAGE_SIZE = 2**16


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredShard:
    """One file with records of a split."""

    name: str
    """File name in the dataset's folder."""
    prefix: str
    """First bits of the content hashes of its records, as a text of 0 and 1; no other shard of the split has them."""
    num_records: int
    num_bytes: int
    """Size of the file."""
    digest: str
    """SHA-256 over label, content hash and stored hash of its records; their file names do not change it."""
    sha256: str
    """SHA-256 of the file."""
    crc32c: str
    """CRC32C of the file, in base64 as Cloud Storage writes it."""


def check_metadata(content: Any, path: str, *, format_version: int) -> None:
    """Refuse the content of a file that `prepare` did not write.

    Args:
        content: What the file contains as JSON.
        path: The file.
        format_version: The one that this version reads.

    Raises:
        UserError: It is not an object, of another version, or a field is missing or of another type.
    """
    if not isinstance(content, dict):
        raise UserError(f"{path!r} is damaged: it is not a JSON object; run prepare again")
    found = content.get("format_version")
    if found != format_version:
        raise UserError(f"dataset {path!r} has format {quoted(found)}, expected {format_version}; run prepare again")
    for name, (is_valid, expected) in _FIELDS.items():
        if not is_valid(content.get(name)):
            found = f"is {quoted(content[name])}" if name in content else "is missing"
            raise UserError(f"{path!r}: field {name} {found}; expected {expected}; run prepare again")


def _is_natural(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and "/" not in value


def _has_counts(value: Any) -> bool:
    counts = value.get("counts") if isinstance(value, dict) else None
    return isinstance(counts, dict) and all(map(_per_split(_is_natural), counts.values()))


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _is_shard(value: Any) -> bool:
    return isinstance(value, dict) and (
        value.keys() == _SHARD_FIELDS.keys() and all(is_valid(value[name]) for name, is_valid in _SHARD_FIELDS.items())
    )


def _are(is_item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(is_item(item) for item in value)


def _per_split(is_item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(is_item(value.get(split)) for split in SPLITS)


_SHARD_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "name": _is_name,
    "prefix": _matches("[01]*"),
    "num_records": _is_natural,
    "num_bytes": _is_natural,
    "digest": _matches("[0-9a-f]{64}"),
    "sha256": _matches("[0-9a-f]{64}"),
    "crc32c": _matches("[0-9A-Za-z+/]{6}=="),
}
_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "fingerprint": (lambda value: isinstance(value, str) and value != "", "a text"),
    "class_names": (lambda value: bool(value) and _are(lambda name: isinstance(name, str))(value), "a list of texts"),
    "image_size": (lambda value: _is_natural(value) and 1 <= value <= _MAX_IMAGE_SIZE, "a number of pixels"),
    "num_examples": (_per_split(_is_natural), f"a number for each of {', '.join(SPLITS)}"),
    "shards": (_per_split(_are(_is_shard)), f"shards for each of {', '.join(SPLITS)}"),
    "statistics": (_has_counts, "an object with the counts of each class"),
}
"""Field -> whether a value is valid, and what is."""
