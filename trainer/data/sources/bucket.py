"""A folder in a bucket (gs://...), laid out like a local one; each image is fetched when it is read."""

import functools
import itertools
from collections.abc import Iterable, Iterator

from exact_resume.files import bucket
from exact_resume.files.overlap import begun, in_order
from localvertex_base.userinput.errors import UserError
from trainer.data.sources import layout, opening
from trainer.data.sources.layout import ListedSource, Listing
from trainer.data.sources.remarks import SYSTEM
from trainer.data.sources.source import Count, Identity, ignore_count

_NUM_CONNECTIONS = 16
_NUM_ALONE = 1000
"""Objects in one answer of a listing."""


class BucketSource(ListedSource):
    """Images below a prefix; objects of the system are skipped. A folder without an object does not exist."""

    def __init__(self, directory: str, count: Count = ignore_count) -> None:
        """List the folder.

        Args:
            directory: Address of the folder.
            count: Follows the listing.

        Raises:
            UserError: The folder is empty, contains no images, or only one class.
            OSError: The bucket does not exist or is not readable.
        """
        super().__init__(directory.rstrip("/"), list_objects(directory, count), opening.read, opening.identity)


def list_objects(directory: str, count: Count = ignore_count) -> Listing:
    """Return the objects below a prefix.

    Args:
        directory: Address of the folder.
        count: Follows the listing.

    Raises:
        UserError: The folder is empty.
        OSError: The bucket does not exist or is not readable.
    """
    path = directory.rstrip("/")
    objects = _objects(path)
    if (first := next(objects, None)) is None:
        raise UserError(f"source {directory!r} not found: no object name starts with {path}/; check the path")
    return fetch(path, _count(itertools.chain([first], objects), count))


def _objects(path: str) -> Iterator[tuple[str, Identity]]:
    """Yield the name and identity of each object below a folder, in order; large folders in it are listed together."""
    with begun(lambda: bucket.entries(path)) as find_entries:
        remaining = bucket.identities(path)
        first = list(itertools.islice(remaining, _NUM_ALONE))
        entries = find_entries()
    begin = f"{first[-1][0].partition('/')[0]}/" if first else ""
    if len(first) < _NUM_ALONE or len({name.partition("/")[0] for name, _ in first}) > _NUM_CONNECTIONS:
        yield from itertools.chain(first, remaining)
        return
    # Objects of the last folder may be missing in the first answer.
    yield from ((name, identity) for name, identity in first if name < begin)
    later = (entry for entry in entries if entry >= begin)
    # Few at a time, which bounds the memory.
    while some := list(itertools.islice(later, _NUM_CONNECTIONS)):
        for found, others in in_order(functools.partial(_below, path), some, num_threads=_NUM_CONNECTIONS):
            yield from itertools.chain(found, others)


def _below(path: str, entry: str) -> tuple[list[tuple[str, Identity]], Iterator[tuple[str, Identity]]]:
    """Return the first objects of a folder, after its placeholder, and an iterator over its others."""
    if not entry.endswith("/"):
        # No image of a class, so its identity has no effect.
        return [(entry, {})], iter(())
    found = ((entry + name, identity) for name, identity in bucket.identities(f"{path}/{entry}"))
    return [(entry, {}), *itertools.islice(found, _NUM_ALONE)], found


def _count(objects: Iterable[tuple[str, Identity]], count: Count) -> Iterator[tuple[str, Identity]]:
    for each in objects:
        count(1)
        yield each


def fetch(directory: str, objects: Iterable[tuple[str, Identity]]) -> Listing:
    """Return the listing of objects.

    Args:
        directory: Address of the folder.
        objects: Name, relative to it, and identity of each object.
    """
    listing = Listing()
    of_system: set[str] = set()
    for name, identity in objects:
        parts = name.rstrip("/").split("/")
        hidden = next((number for number, part in enumerate(parts) if layout.is_system_name(part)), len(parts))
        folders = ["/".join(parts[:number]) for number in range(1, min(hidden + 1, len(parts)))]
        listing.folders.update(folders)
        if hidden < len(parts):
            if (prefix := "/".join(parts[: hidden + 1])) not in of_system:
                listing.remarks.add(SYSTEM, prefix)
            of_system.add(prefix)
        elif not name.endswith("/"):
            listing.add_file(name, f"{directory}/{name}", identity)
    return listing
