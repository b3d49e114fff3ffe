"""The required content of `dataset.json`; the file may have been edited, cut off or written by another program."""

import dataclasses
import re
from typing import Any

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.shape import Wrong, check
from localvertex._base.userinput.spelling import quote
from trainer.data.splits import SPLITS

NAME = "images"
"""Name of the dataset in TensorFlow Datasets' metadata and in the names of the shards."""
_COUNT = range(10**15)
_SHA256 = re.compile("[0-9a-f]{64}")
_SHARD = {
    "name!": re.compile(r"[^/\x00-\x1f]*"),
    "prefix!": re.compile("[01]*"),
    "num_records!": _COUNT,
    "num_bytes!": _COUNT,
    "digest!": _SHA256,
    "sha256!": _SHA256,
    "crc32c!": re.compile("[0-9A-Za-z+/]{6}=="),
}
_COUNTS = {f"{split}!": _COUNT for split in SPLITS}
_METADATA = {
    "fingerprint!": re.compile("(?s).+"),
    "class_names!": [str],
    "image_size!": range(1, 2**16 + 1),
    "num_examples!": _COUNTS,
    "shards!": {f"{split}!": [_SHARD] for split in SPLITS},
    "statistics!": {"counts!": {str: _COUNTS}},
}


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
        raise UserError(f"dataset {path!r} has format {quote(found)}, expected {format_version}; run prepare again")
    try:
        check(content, _METADATA)
    except Wrong as wrong:
        raise UserError(f"{path!r}: {wrong}; run prepare again") from None
    if not content["class_names"]:
        raise UserError(f"{path!r}: class_names is empty; run prepare again")
