"""Files that components wrote, as responses: for a frame or an image under the policy of a sandbox, or to save."""

import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from localvertex._base.userinput.regular_files import open_regular

_SANDBOX = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""No scripts at all, and an origin of its own, wherever it is opened."""

_CHUNK_BYTES = 1 << 20


def viewable_file(file: Path, media_type: str) -> Response:
    """Return a file that the browser shows.

    Raises:
        OSError: It cannot be read.
    """
    return _content(file, media_type, {})


def download(file: Path) -> Response:
    """Return a file that the browser saves.

    Raises:
        OSError: It cannot be read.
    """
    disposition = f"attachment; filename*=UTF-8''{quote(file.name, safe='', errors='replace')}"
    return _content(file, "application/octet-stream", {"Content-Disposition": disposition})


def archive(files: Mapping[Path, str], name: str) -> Response:
    """Return files as a ZIP that the browser saves; it is written while it is sent.

    Args:
        files: The name of each in the archive.
        name: Name of the archive.
    """
    headers = {**_SANDBOX, "Content-Disposition": f"attachment; filename={name}"}
    return StreamingResponse(_zipped(files), headers=headers, media_type="application/zip")


class _Sink(io.RawIOBase):
    """Collects the bytes that were written since the last read; it cannot seek."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += data
        return len(data)

    def take(self) -> bytes:
        found, self.data = bytes(self.data), bytearray()
        return found


def _zipped(files: Mapping[Path, str]) -> Iterator[bytes]:
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as target:
        for path, name in files.items():
            with open_regular(path) as file, target.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
                while chunk := file.read(_CHUNK_BYTES):
                    entry.write(chunk)
                    yield sink.take()
    yield sink.take()


def _content(file: Path, media_type: str, headers: dict[str, str]) -> Response:
    """Return the content of a file, as much as it has now: a log grows while it is sent."""
    with open_regular(file) as stream:
        size = os.fstat(stream.fileno()).st_size
    sent = {**_SANDBOX, **headers, "Content-Length": str(size)}
    return StreamingResponse(_chunks(file, size), headers=sent, media_type=media_type)


def _chunks(path: Path, size: int) -> Iterator[bytes]:
    with open_regular(path) as file:
        while size and (chunk := file.read(min(size, _CHUNK_BYTES))):
            size -= len(chunk)
            yield chunk
