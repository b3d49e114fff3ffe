"""Uploads of objects, with the checksum that the service verifies."""

import base64
import os
from typing import IO, Any

from exact_resume.files.bucket_client import TIMEOUT_SECONDS, RetryPolicy

_PIECE_BYTES = 32 * 2**20
"""A large object is sent in pieces, each with its own attempts; a multiple of 256 KiB, as the protocol requires."""
_MAX_UPLOADS = 3
_READ_BYTES = 2**20
"""Bytes per read for the checksum, so that it needs no memory."""


def send(blob: Any, file: IO[bytes]) -> None:
    """Write a google.cloud.storage.Blob, which appears as a whole or not at all; the service checks its checksum.

    Raises:
        GoogleAPICallError: The service refuses it, or fails in all attempts; other errors of its library likewise.
    """
    blob.chunk_size = _PIECE_BYTES
    size, num_failures = file.seek(0, os.SEEK_END), 0
    while True:
        try:
            blob.upload_from_file(
                file, rewind=True, size=size, retry=RetryPolicy(), timeout=TIMEOUT_SECONDS, checksum="crc32c"
            )
            return
        except ValueError as error:
            # The service may keep a part of a piece, with which the library cannot continue.
            num_failures += 1
            if num_failures == _MAX_UPLOADS:
                raise ConnectionError(f"only a part of a piece has arrived: {error}") from error


def crc32c(file: IO[bytes]) -> str:
    """Return the checksum of a file as Cloud Storage writes it."""
    import google_crc32c

    checksum: Any = google_crc32c.Checksum()  # type: ignore[no-untyped-call]
    file.seek(0)
    while piece := file.read(_READ_BYTES):
        checksum.update(piece)
    return base64.b64encode(checksum.digest()).decode()
