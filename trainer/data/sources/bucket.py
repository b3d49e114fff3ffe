"""A folder in a bucket (gs://...), laid out like a local one; each image is fetched when it is read."""

from exact_resume.files import bucket
from localvertex._base.userinput.errors import UserError
from trainer.data.sources import layout
from trainer.data.sources.layout import Listing
from trainer.data.sources.remarks import SYSTEM
from trainer.data.sources.source import Count, ignore_count


def list_objects(directory: str, count: Count = ignore_count) -> Listing:
    """Return the objects below a prefix, without those of the system. A folder without an object does not exist.

    Args:
        directory: Address of the folder.
        count: Follows the listing.

    Raises:
        UserError: The folder is empty.
        OSError: The bucket does not exist or is not readable.
    """
    path = directory.rstrip("/")
    listing = Listing(path)
    of_system: set[str] = set()
    num_objects = 0
    for name, identity in bucket.identities(path):
        num_objects += 1
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
            listing.add_file(name, f"{path}/{name}", identity)
    if not num_objects:
        raise UserError(f"source {directory!r} not found: no object name starts with {path}/; check the path")
    return listing
