"""The certificate of the gRPC server, and the file with which clients trust it.

`trustme` makes it. A client needs the authority that signed the certificate, whose key is never written and ends with
the call that made it: a stolen `server.pem` stands in for this machine alone.
"""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from localvertex._base.lines import WriteLine
from localvertex._base.userinput import atomic_write

_LIFETIME = timedelta(days=730)

_RENEWED = timedelta(days=365)
"""A certificate is replaced at a start when it has less time left, so it never expires while a server runs."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A certificate with its private key, and the file that clients need."""

    private_key: bytes
    chain: bytes
    roots: Path
    """The public roots and the authority that signed the certificate."""


def load(folder: Path, log: WriteLine) -> Certificate:
    """Return the certificate in a folder; make it if it is missing, damaged or old.

    Args:
        folder: Folder of the certificate.
        log: Called when a certificate is replaced.

    Raises:
        OSError: The folder cannot be used.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, roots = folder / "server.pem", folder / "roots.pem"
    try:
        private_key, chain, authority = _read(path)
    except FileNotFoundError:
        private_key, chain, authority = _make(path)
    except ValueError as error:
        private_key, chain, authority = _make(path)
        log(f"replaced the gRPC certificate {path}: {error}; restart the programs that use it")
    # The variable that names this file replaces all other roots.
    bundle = Path(certifi.where()).read_bytes() + b"\n# localvertex serve\n" + authority
    if not roots.is_file() or roots.read_bytes() != bundle:
        atomic_write.write_all({roots: bundle})
    return Certificate(private_key=private_key, chain=chain, roots=roots)


def _read(path: Path) -> tuple[bytes, bytes, bytes]:
    """Return the private key, the certificate and the authority that signed it.

    Raises:
        FileNotFoundError: No certificate exists yet.
        ValueError: It cannot be used; the text is the reason.
    """
    with path.open("rb") as file:
        status, data = os.fstat(file.fileno()), file.read()
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise ValueError(f"other users can read or change it (mode {status.st_mode & 0o777:o})")
    try:
        key = load_pem_private_key(data, password=None)
        certificate, *others = x509.load_pem_x509_certificates(data)
        if len(others) != 1:
            raise ValueError("expected the certificate and its authority")
    except (ValueError, TypeError) as error:
        raise ValueError(f"it is damaged ({str(error).splitlines()[0][:80]})") from None
    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - _RENEWED:
        raise ValueError(f"it is valid until {certificate.not_valid_after_utc:%Y-%m-%d}")
    private_key = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return private_key, certificate.public_bytes(Encoding.PEM), others[0].public_bytes(Encoding.PEM)


def _make(path: Path) -> tuple[bytes, bytes, bytes]:
    """Write a new key and its certificates into one file, so that they always match."""
    authority, now = trustme.CA(organization_name="localvertex serve", path_length=0), datetime.now(UTC)
    issued = authority.issue_cert(
        "localhost", "127.0.0.1", "::1", not_before=now - timedelta(days=1), not_after=now + _LIFETIME
    )
    made = issued.private_key_pem.bytes(), issued.cert_chain_pems[0].bytes(), authority.cert_pem.bytes()
    atomic_write.write_all({path: b"".join(made)}, mode=0o600)
    return made
