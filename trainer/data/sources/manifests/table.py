"""The lines of manifests that name an image."""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator

from trainer.data.splits import strictness


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line that names an image."""

    location: str
    name: str
    label: str
    split: str
    file: int
    """Position of the manifest in the order of reading."""
    number: int
    """Number of the line in its manifest."""


class Conflict(Exception):
    """A line gives an image another label than an earlier one; the arguments are the line and the earlier one."""


def unite(lines: Iterable[Line]) -> tuple[list[Line], list[Line]]:
    """Return the first line of each image, with the strictest split and a unique name, and the repeated lines.

    Raises:
        Conflict: An image has two labels.
    """
    first: dict[str, Line] = {}
    repeated = []
    for line in lines:
        known = first.setdefault(line.location, line)
        if known is line:
            continue
        if known.label != line.label:
            raise Conflict(line, known)
        repeated.append(line)
        if strictness(line.split) > strictness(known.split):
            first[line.location] = dataclasses.replace(known, split=line.split)
    return list(_with_unique_names(first.values())), repeated


def _with_unique_names(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines; of equal paths in other buckets or folders, the later ones get other names."""
    names = set()
    for line in lines:
        if line.name in names:
            digest = hashlib.sha256(line.location.encode("utf-8", "surrogateescape")).hexdigest()
            yield dataclasses.replace(line, name=f"{digest[:16]}/{line.name}")
        else:
            names.add(line.name)
            yield line
