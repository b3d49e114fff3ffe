"""Uploads of objects: a small one as a single request, a large one in pieces that resume where they stopped."""

import base64
import re
from typing import IO, Any

from exact_resume.files.bucket_client import TIMEOUT_SECONDS, RetryPolicy, session

_RESUMABLE_BYTES = 2**20
"""From this size on, what has arrived is worth a request more."""
_PIECE_BYTES = 32 * 2**20
"""Multiple of 256 KiB, as the protocol asks for."""
_READ_BYTES = 2**20
"""At a time for the checksum, so that it needs no memory."""
_CONTENT_TYPE = "application/octet-stream"


def send(blob: Any, file: IO[bytes], num_bytes: int) -> None:
    """Write a google.cloud.storage.Blob, which appears as a whole or not at all; the service checks its checksum.

    Raises:
        GoogleAPICallError: The service refuses it, or fails in all attempts; other errors of its library likewise.
    """
    file.seek(0)
    if num_bytes < _RESUMABLE_BYTES:
        blob.upload_from_string(
            file.read(), _CONTENT_TYPE, retry=RetryPolicy(), timeout=TIMEOUT_SECONDS, checksum="crc32c"
        )
        return
    url = blob.create_resumable_upload_session(
        _CONTENT_TYPE, size=num_bytes, retry=RetryPolicy(), timeout=TIMEOUT_SECONDS, checksum=None
    )
    _Upload(url, file, num_bytes).run()


class _Upload:
    """A resumable upload (https://cloud.google.com/storage/docs/performing-resumable-uploads).

    The library's own sends a piece again from its beginning when the connection is lost.
    """

    def __init__(self, url: str, file: IO[bytes], num_bytes: int) -> None:
        self._url, self._file, self._num_bytes = url, file, num_bytes
        self._num_arrived, self._is_known = 0, True
        self._checksum = crc32c(file)

    def run(self) -> None:
        """Send the content until all of it has arrived."""
        RetryPolicy(lambda: self._num_arrived)(self._attempt)()

    def _attempt(self) -> None:
        if not self._is_known:
            self._num_arrived = self._put(b"", "*")
        while self._num_arrived < self._num_bytes:
            self._is_known = False
            self._file.seek(self._num_arrived)
            piece = self._file.read(min(_PIECE_BYTES, self._num_bytes - self._num_arrived))
            num_arrived = self._put(piece, f"{self._num_arrived}-{self._num_arrived + len(piece) - 1}")
            if num_arrived <= self._num_arrived:
                raise ConnectionError(f"no byte of a piece of {len(piece):,} has arrived")
            self._num_arrived, self._is_known = num_arrived, True

    def _put(self, piece: bytes, sent: str) -> int:
        """Send a piece, or none to ask; return how much has arrived."""
        from google.api_core.exceptions import from_http_response

        headers = {"Content-Range": f"bytes {sent}/{self._num_bytes}", "Content-Type": _CONTENT_TYPE}
        if sent.endswith(f"-{self._num_bytes - 1}"):
            headers["x-goog-hash"] = f"crc32c={self._checksum}"
        response: Any = session().put(
            self._url, data=piece, headers=headers, timeout=TIMEOUT_SECONDS, allow_redirects=False
        )
        if response.status_code == 308:
            arrived = re.fullmatch(r"bytes=0-(\d+)", response.headers.get("Range", ""))
            return int(arrived[1]) + 1 if arrived else 0
        if response.status_code not in (200, 201):
            raise from_http_response(response)  # type: ignore[no-untyped-call]
        return self._num_bytes


def crc32c(file: IO[bytes]) -> str:
    """Return the checksum of a file as Cloud Storage writes it."""
    import google_crc32c

    checksum: Any = google_crc32c.Checksum()  # type: ignore[no-untyped-call]
    file.seek(0)
    while piece := file.read(_READ_BYTES):
        checksum.update(piece)
    return base64.b64encode(checksum.digest()).decode()
