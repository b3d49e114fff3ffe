"""The certificate of the gRPC server, and the file with which clients trust it."""

import ipaddress
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from localvertex._base.lines import WriteLine
from localvertex._base.userinput import atomic_write

_LIFETIME = timedelta(days=730)

_RENEWED = timedelta(days=365)
"""A certificate is replaced at a start when it has less time left, so it never expires while a server runs."""

_NAMES: tuple[x509.GeneralName, ...] = (
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("::1")),
)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A certificate with its private key, and the file that clients need."""

    private_key: bytes
    chain: bytes
    roots: Path
    """The public roots and this certificate."""


def load(folder: Path, log: WriteLine) -> Certificate:
    """Return the certificate in a folder; make it if it is missing, damaged or old.

    Args:
        folder: Where the certificate is kept.
        log: Called when a certificate is replaced.

    Raises:
        OSError: The folder cannot be used.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, roots = folder / "server.pem", folder / "roots.pem"
    try:
        private_key, chain = _read(path)
    except FileNotFoundError:
        private_key, chain = _make(path)
    except ValueError as error:
        private_key, chain = _make(path)
        log(f"replaced the gRPC certificate {path}: {error}; restart the programs that use it")
    # The variable that names this file replaces all other roots.
    bundle = Path(certifi.where()).read_bytes() + b"\n# localvertex serve\n" + chain
    if not roots.is_file() or roots.read_bytes() != bundle:
        atomic_write.write_all({roots: bundle})
    return Certificate(private_key=private_key, chain=chain, roots=roots)


def _read(path: Path) -> tuple[bytes, bytes]:
    """Return the private key and the certificate.

    Raises:
        FileNotFoundError: No certificate exists yet.
        ValueError: It cannot be used; the text is the reason.
    """
    with path.open("rb") as file:
        status, data = os.fstat(file.fileno()), file.read()
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise ValueError(f"other users can read or change it (mode {status.st_mode & 0o777:o})")
    try:
        key, certificate = load_pem_private_key(data, password=None), x509.load_pem_x509_certificate(data)
    except (ValueError, TypeError) as error:
        raise ValueError(f"it is damaged ({str(error).splitlines()[0][:80]})") from None
    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - _RENEWED:
        raise ValueError(f"it is valid until {certificate.not_valid_after_utc:%Y-%m-%d}")
    return _private(key), certificate.public_bytes(Encoding.PEM)


def _make(path: Path) -> tuple[bytes, bytes]:
    """Write a new key and certificate into one file, so that they always match."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localvertex serve")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName(_NAMES), critical=False)
        # It signs no other certificate, so a stolen key cannot stand in for other hosts.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    private_key, chain = _private(key), builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    atomic_write.write_all({path: private_key + chain}, mode=0o600)
    return private_key, chain


def _private(key: PrivateKeyTypes) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
