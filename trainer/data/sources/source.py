"""What every source of labelled images offers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from trainer.data.sources.remarks import Remarks

MAX_FILE_BYTES = 2**30
"""Larger files are not read: the largest image that is decoded has about 6 bytes per pixel in this size."""


Identity = dict[str, int | str]
"""What shows without reading that an image is still the same: sizes, times, generations, checksums."""


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
    """Called before `read`, so that a change between the two is seen the next time; may raise OSError."""
    location: str = ""
    """What `trainer.data.sources.opening` takes, on any machine: a path or gs://; empty: only this process reads it."""


class Source(Protocol):
    """A collection of labelled images."""

    @property
    def class_names(self) -> list[str]:
        """Names of the classes, in the order of the labels."""
        ...

    @property
    def remarks(self) -> Remarks:
        """What is skipped."""
        ...

    @property
    def unreadable(self) -> Sequence[tuple[str, str]]:
        """Name of each image that cannot be read whatever it contains, and the reason; `images` leaves them out."""
        ...

    def images(self) -> Iterator[SourceImage]:
        """Yield all images, in the same order each time."""
        ...
