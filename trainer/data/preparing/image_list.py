"""`images.jsonl.gz`: every image of the source, used or rejected, one JSON object per line."""

import contextlib
import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trainer.data.preparing.rows import FIGURES, Row
from trainer.data.stored.records import Figures
from trainer.files import bucket, storage

FILE = "images.jsonl.gz"
_ENCODER = json.JSONEncoder(sort_keys=True)
_COMPRESSION = 1
"""Level of gzip: hashes compress badly, and higher levels take longer than all other files together."""


@contextlib.contextmanager
def written(directory: str | os.PathLike[str], class_names: list[str]) -> Iterator[Callable[[Row], None]]:
    """Yield a function that appends a row; the same rows give the same bytes at any time."""
    with (
        open(os.path.join(directory, FILE), "wb") as file,
        # Without name and time, so the header is always the same.
        gzip.GzipFile("", "wb", compresslevel=_COMPRESSION, fileobj=file, mtime=0) as packed,
    ):

        def add(row: Row) -> None:
            packed.write(_line(row, class_names))

        yield add


def read(directory: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a dataset, local or on gs://, by name."""
    yield from map(json.loads, read_encoded(directory))


def read_encoded(directory: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the encoded lines of a dataset, local or on gs://; equal images have equal lines."""
    path = storage.join(directory, FILE)
    with tempfile.TemporaryFile(prefix="images-") if storage.is_remote(path) else open(path, "rb") as file:
        if storage.is_remote(path):
            bucket.download(path, file)
            file.seek(0)
        with gzip.GzipFile(fileobj=file) as lines:
            yield from lines


def rows(directory: str | os.PathLike[str], class_names: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a dataset on this machine, by name."""
    labels = {name: label for label, name in enumerate(class_names)} | {None: None}
    for line in read(directory):
        is_used = "reason" not in line
        yield Row(
            name=line["name"],
            label=labels[line["label"]],
            split=line["split"],
            identity=line["identity"],
            reason=line.get("reason", ""),
            remarks=tuple(line.get("remarks", ())),
            figures=Figures(**{name: line[name] for name in FIGURES}) if is_used else None,
            stored_hash=line.get("stored_hash", ""),
            num_stored_bytes=line.get("num_stored_bytes", 0),
        )


def _line(row: Row, class_names: list[str]) -> bytes:
    content: dict[str, Any] = {
        "name": row.name,
        "label": None if row.label is None else class_names[row.label],
        "split": row.final or row.split,
        "identity": row.identity,
    }
    if row.figures is None:
        content["reason"] = row.reason
    else:
        content |= vars(row.figures) | {"stored_hash": row.stored_hash, "remarks": row.remarks}
        content["num_stored_bytes"] = row.num_stored_bytes
    return (_ENCODER.encode(content) + "\n").encode()
