"""Reads and examines all images of a source on all cores of this machine."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from trainer.data.preparing.examine import Examined, examine
from trainer.data.preparing.rows import Row, Rows
from trainer.data.preparing.shards import Spill
from trainer.data.sources.source import Identity, SourceImage

_IN_FLIGHT = 512
"""Number of images that are read ahead, which bounds the memory."""
_Outcome = tuple[Identity, Examined | str]


def read_all(source_images: Iterable[SourceImage], image_size: int, spill: Spill, rows: Rows) -> None:
    """Add a row for each image, and its prepared bytes to the spill file, in the source's order.

    Args:
        source_images: Not read yet.
        image_size: Height and width of the prepared images in pixels.
        spill: Grows by the prepared images.
        rows: Grow by one per image.
    """
    found = _outcomes(source_images, image_size)
    while chunk := list(islice(found, _IN_FLIGHT)):
        rows.add(_row(image, identity, outcome, spill) for image, (identity, outcome) in chunk)


def _outcomes(source_images: Iterable[SourceImage], image_size: int) -> Iterator[tuple[SourceImage, _Outcome]]:
    pending: deque[tuple[SourceImage, Future[_Outcome]]] = deque()
    # Threads are enough, because Pillow's decoders and filters release the interpreter's lock. With a bucket they wait.
    with ThreadPoolExecutor(max(16, os.cpu_count() or 1)) as pool:
        for image in source_images:
            pending.append((image, pool.submit(_read_one, image, image_size)))
            if len(pending) == _IN_FLIGHT:
                first, outcome = pending.popleft()
                yield first, outcome.result()
        for first, outcome in pending:
            yield first, outcome.result()


def _read_one(image: SourceImage, image_size: int) -> _Outcome:
    identity: Identity = {}
    try:
        identity = image.identity()
        data = image.read()
    except OSError as error:
        return identity, " ".join(str(error).split())
    return identity, examine(data, image_size)


def _row(image: SourceImage, identity: Identity, outcome: Examined | str, spill: Spill) -> Row:
    if isinstance(outcome, str):
        return Row(name=image.name, label=image.label, split=image.split, identity=identity, reason=outcome)
    offset = spill.tell()
    spill.write(outcome.stored)
    return Row(
        name=image.name,
        label=image.label,
        split=image.split,
        identity=identity,
        remarks=outcome.remarks,
        figures=outcome.figures,
        stored_hash=outcome.stored_hash,
        offset=offset,
        num_stored_bytes=len(outcome.stored),
    )
