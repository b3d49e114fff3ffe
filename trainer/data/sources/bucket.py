"""A folder in a bucket (gs://...), laid out like a local one; each image is fetched when it is read."""

import itertools
from collections.abc import Iterable, Iterator

from trainer.data.sources import layout, opening
from trainer.data.sources.layout import ListedSource, Listing
from trainer.data.sources.remarks import SYSTEM
from trainer.data.sources.source import Count, Identity, uncounted
from trainer.files import bucket
from vertex_gpu_training.userinput.errors import UserError


class BucketSource(ListedSource):
    """Images below a prefix; objects of the system are skipped. A folder without an object does not exist."""

    def __init__(self, directory: str, count: Count = uncounted) -> None:
        """List the folder.

        Args:
            directory: Address of the folder.
            count: Follows the listing.

        Raises:
            UserError: The folder is empty, contains no images, or only one class.
            OSError: The bucket does not exist or is not readable.
        """
        super().__init__(directory.rstrip("/"), listing(directory, count), opening.read, opening.identity)


def listing(directory: str, count: Count = uncounted) -> Listing:
    """Return the objects below a prefix.

    Args:
        directory: Address of the folder.
        count: Follows the listing.

    Raises:
        UserError: The folder is empty.
        OSError: The bucket does not exist or is not readable.
    """
    path = directory.rstrip("/")
    objects = bucket.identities(path)
    if (first := next(objects, None)) is None:
        raise UserError(f"source {directory!r} not found: no object name starts with {path}/; check the path")
    return listed(path, _counted(itertools.chain([first], objects), count))


def _counted(objects: Iterable[tuple[str, Identity]], count: Count) -> Iterator[tuple[str, Identity]]:
    for each in objects:
        count(1)
        yield each


def listed(directory: str, objects: Iterable[tuple[str, Identity]]) -> Listing:
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
