"""The work items of `prepare`, for every engine: images to read and examine."""

import dataclasses
import functools
import itertools
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from trainer.data.preparing import parts
from trainer.data.preparing.engines.engine import Engine
from trainer.data.preparing.parts import Part
from trainer.data.preparing.rows import Row
from trainer.data.sources.source import SourceImage


def make_parts(images: Iterable[SourceImage], image_size: int, folder: str, engine: Engine) -> Iterator[Part]:
    """Have images read and examined, and yield their parts.

    Args:
        images: Each with a location that the engine's workers can open.
        image_size: Height and width of the prepared images in pixels.
        folder: Of the parts; the workers can write it.
        engine: Does the work.
    """
    remaining = iter(images)
    items = iter(lambda: list(itertools.islice(remaining, parts.MAX_IMAGES)), [])
    return engine.map(functools.partial(_make, image_size, folder), items)


def take(part: Part, folder: str, prepared: BinaryIO) -> list[Row]:
    """Return the rows of a part after its images were appended to a file.

    Raises:
        DamagedPart: It is incomplete or was changed.
    """
    with parts.open_bytes(folder, part.name) as file:
        start = prepared.seek(0, 2)
        shutil.copyfileobj(file, prepared)
    return [dataclasses.replace(row, offset=start + row.offset) for row in parts.read(folder, part.name)]


def _make(image_size: int, folder: str, images: Sequence[SourceImage]) -> Part:
    return parts.make(images, image_size, folder)
