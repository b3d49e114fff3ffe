"""`images.jsonl.gz`: every image of the source, used or rejected, one JSON object per line."""

import contextlib
import gzip
import io
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from exact_resume.files import bucket, storage
from trainer.data.preparing.rows import DECODE, Row, Values
from trainer.data.sources.source import Identity

FILE = "images.jsonl.gz"
_GZIP_BITS = 31
"""How zlib is asked for a file of gzip, whose header then has neither name nor time."""


@contextlib.contextmanager
def open_writer(directory: storage.Path, class_names: list[str]) -> Iterator[Callable[[Row], None]]:
    """Yield a function that appends a row; the same rows give the same bytes at any time."""
    # Thumbnails and hashes have no repetitions: smaller codes for their letters would save a quarter of the list, a
    # fiftieth of the dataset, and take longer to make than all else here.
    packer = zlib.compressobj(0, zlib.DEFLATED, _GZIP_BITS)
    with open(os.path.join(directory, FILE), "wb") as file:

        def add(row: Row) -> None:
            file.write(packer.compress(_line(row, class_names)))

        yield add
        file.write(packer.flush())


def read(directory: storage.Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a dataset, local or on gs://, by name."""
    yield from map(json.loads, read_encoded(directory))


def read_encoded(directory: storage.Path) -> Iterator[bytes]:
    """Yield the encoded lines of a dataset, local or on gs://; equal images have equal lines."""
    path = storage.join(directory, FILE)
    with tempfile.TemporaryFile(prefix="images-") if storage.is_remote(path) else open(path, "rb") as file:
        if storage.is_remote(path):
            bucket.download(path, file)
            file.seek(0)
        # Buffered, because GzipFile itself finds the ends of lines slowly.
        with gzip.GzipFile(fileobj=file) as unpacked, io.BufferedReader(unpacked) as lines:
            yield from lines


def values(directory: storage.Path, class_names: Sequence[str]) -> Iterator[tuple[Values, Identity]]:
    """Yield the rows of a dataset on this machine, by name, as `rows.to_values` returns them, with their identities.

    The origin of each is its split in this dataset.
    """
    labels = {name: label for label, name in enumerate(class_names)} | {None: None}
    for encoded in read_encoded(directory):
        line = encoded.decode()
        content = DECODE(line)[0]
        content_hash = content.get("content_hash")
        # Within a text, a backslash is before each quotation mark.
        start = line.index(', "appearance": ' if content_hash else ', "identity": ')
        details = "{" + line[start + 2 : -1]
        yield (
            (
                *(content["name"], labels[content["label"]], content["split"], content.get("reason", ""), content_hash),
                *(content.get("stored_hash", ""), content.get("num_stored_bytes", 0)),
                *(content["split"] if content_hash else "", 0, details),
            ),
            content["identity"],
        )


def _line(row: Row, class_names: list[str]) -> bytes:
    """Return a line; what comes first changes without the image, and the rest is known from the previous dataset."""
    label = None if row.label is None else class_names[row.label]
    first = json.dumps({"label": label, "name": row.name, "split": row.final or row.split})
    return f"{first[:-1]}, {row.details[1:]}\n".encode()
