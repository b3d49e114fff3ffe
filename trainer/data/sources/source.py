"""The interface of every source of labelled images."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from trainer.data.sources.remarks import Remarks

MAX_FILE_BYTES = 2**30
"""Larger files are not read: the largest image that is decoded has about 6 bytes per pixel in this size."""


Identity = dict[str, int | str]
"""Sizes, times, generations or checksums by which an unchanged image is recognised without reading it."""


@dataclass(frozen=True, kw_only=True)
class SourceImage:
    """One image of a source, not read yet."""

    name: str
    """Unique within the source and stable: the path below the folder, or split and index."""
    label: int
    """Index into the source's class names."""
    split: str
    """One of `trainer.data.splits.SPLITS` where the source has splits of its own; empty: prepare decides by content."""
    read: Callable[[], bytes]
    """Returns the encoded image; may raise OSError."""
    identity: Callable[[], Identity] = dict
    """Called before `read`, so the next run sees a change in between; may raise OSError."""
    location: str = ""
    """Path or gs:// address for `trainer.data.sources.opening`; empty if only this process can read the image."""


def ignore_count(num_found: int) -> None:
    """Ignore the number of new entries."""


Count = Callable[[int], None]
"""A function that is called with the number of entries found since the last call."""


class Source(Protocol):
    """A collection of labelled images."""

    class_names: list[str]
    """Names of the classes, in the order of the labels."""
    remarks: Remarks
    """Parts of the source that are skipped."""
    num_images: int
    """Number of images that `images` yields."""

    @property
    def unreadable(self) -> Sequence[tuple[str, str]]:
        """Name of each image that cannot be read whatever it contains, and the reason; `images` leaves them out."""
        ...

    def images(self) -> Iterator[SourceImage]:
        """Yield all images, in the same order each time."""
        ...
