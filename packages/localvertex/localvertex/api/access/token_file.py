"""The token of a work folder, and the addresses of its server, as programs of the same user find them.

`<work-dir>/api/token` is made at the first start and kept. It can be read by its owner only.
"""

import re
import secrets
from contextlib import suppress
from pathlib import Path

from localvertex._base.lines import WriteLine
from localvertex._base.userinput import atomic_write, regular_files
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.regular_files import Unusable as Unusable

_TOKEN, _ADDRESS = Path("api", "token"), Path("api", "address")

_NUM_BYTES = 32
"""Bytes of random data in a token."""

_VALID = re.compile(r"[A-Za-z0-9_-]{32,200}")

_OF_THIS_MACHINE = re.compile(r"(?P<url>http://127\.0\.0\.1:[0-9]{1,5})(?:\n(?P<grpc>localhost:[0-9]{1,5}))?")
"""Programs send the token to the addresses, so others do not count."""


def path(work_dir: Path) -> Path:
    """Return the file of the token."""
    return work_dir / _TOKEN


def prepare(work_dir: Path, log: WriteLine) -> str:
    """Return the token of a work folder; make one if there is none, or if others may know it.

    Args:
        work_dir: A folder whose `api` folder exists and is locked by the caller.
        log: Called with one line when a token is replaced.

    Raises:
        UserError: The token cannot be written.
    """
    file = path(work_dir)
    try:
        if token := read(work_dir):
            return token
    except Unusable as error:
        log(f"{file} {error}; it is replaced by a new token")
        # It may be a pipe, which is not replaced elsewhere; this folder has only files of localvertex.
        with suppress(OSError):
            file.unlink()
    token = secrets.token_urlsafe(_NUM_BYTES)
    _write(file, f"{token}\n", mode=0o600)
    return token


def read(work_dir: Path) -> str:
    """Return the token of a work folder, empty if there is none.

    Raises:
        Unusable: Others may know it, or the file is damaged.
    """
    try:
        text = regular_files.read_private(path(work_dir), max_bytes=1000).strip()
    except FileNotFoundError:
        return ""
    if not _VALID.fullmatch(text):
        raise Unusable("does not contain a token")
    return text


def publish(work_dir: Path, url: str, grpc: str = "") -> None:
    """Write the addresses of the running server; `grpc` is empty if gRPC is off.

    Raises:
        UserError: They cannot be written.
    """
    if (address(work_dir), grpc_address(work_dir)) != (url, grpc):  # a restart at the same ones needs no room
        _write(work_dir / _ADDRESS, f"{url}\n{grpc}\n", mode=0o600)


def address(work_dir: Path) -> str:
    """Return the address of the last server, empty if there was none, or if it is not on this machine."""
    return _addresses(work_dir)[0]


def grpc_address(work_dir: Path) -> str:
    """Return the address of the last server for gRPC, empty if it had none."""
    return _addresses(work_dir)[1]


def roots(work_dir: Path) -> Path:
    """Return the file with which clients trust the certificate of the server."""
    return work_dir / "api" / "grpc" / "roots.pem"


def _addresses(work_dir: Path) -> tuple[str, str]:
    try:
        text = regular_files.read_private(work_dir / _ADDRESS, max_bytes=1000).strip()
    except (OSError, ValueError, Unusable):
        return "", ""
    found = _OF_THIS_MACHINE.fullmatch(text)
    return (found["url"], found["grpc"] or "") if found else ("", "")


def _write(file: Path, text: str, *, mode: int) -> None:
    try:
        atomic_write.write_text(file, text, mode=mode)
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}") from None
