"""Reads an image by its location, on whichever machine the caller runs: a local path or an object on gs://."""

import os

from exact_resume.files import bucket
from trainer.data.sources import folder
from trainer.data.sources.source import MAX_FILE_BYTES, Identity

_GS = "gs://"


def read(location: str) -> bytes:
    """Return the content of an image.

    Raises:
        OSError: It is missing, too large, not a regular file, or belongs to the operating system.
    """
    if location.startswith(_GS):
        return bucket.read(location, max_bytes=MAX_FILE_BYTES)
    # Checked here, because a link may have changed since the source was listed.
    if folder.is_of_kernel(os.path.realpath(location)):
        raise OSError("a file of the operating system")
    return folder.read(location)


def identity(location: str) -> Identity:
    """Return the identity of an image; on gs://, this is a request.

    Raises:
        OSError: It is missing or cannot be accessed.
    """
    return bucket.identity(location) if location.startswith(_GS) else folder.identity(location)
