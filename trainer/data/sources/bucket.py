"""A folder in a bucket (gs://...), laid out like a local one; each image is fetched when it is read."""

import itertools
from collections.abc import Iterable

from exact_resume.files import bucket
from localvertex_base.userinput.errors import UserError
from trainer.data.sources import layout, opening
from trainer.data.sources.layout import ListedSource, Listing
from trainer.data.sources.remarks import SYSTEM
from trainer.data.sources.source import Count, Identity, ignore_count


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
    objects = bucket.identities(path)
    if (first := next(objects, None)) is None:
        raise UserError(f"source {directory!r} not found: no object name starts with {path}/; check the path")
    return fetch(path, itertools.chain([first], objects), count)


def fetch(directory: str, objects: Iterable[tuple[str, Identity]], count: Count = ignore_count) -> Listing:
    """Return the listing of objects.

    Args:
        directory: Address of the folder.
        objects: Name, relative to it, and identity of each object.
        count: Follows the listing.
    """
    listing = Listing()
    of_system: set[str] = set()
    for name, identity in objects:
        count(1)
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
