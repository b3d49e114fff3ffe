"""The certificate is kept, private, limited to this machine, and replaced when it cannot be used."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from localvertex.api.rpc import certificate


def never(text: str) -> None:
    pytest.fail(text)


def test_a_certificate_is_made_once_and_its_key_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "api" / "grpc"
    made = certificate.load(folder, never)
    assert (folder.stat().st_mode & 0o777, (folder / "server.pem").stat().st_mode & 0o777) == (0o700, 0o600)
    assert certificate.load(folder, never) == made
    assert sorted(path.name for path in folder.iterdir()) == ["roots.pem", "server.pem"]


def authority(roots: bytes) -> x509.Certificate:
    """Return the root that `load` adds to the public ones."""
    return x509.load_pem_x509_certificate(roots.removeprefix(Path(certifi.where()).read_bytes()))


def test_the_certificate_is_only_for_this_machine_and_signs_no_other(tmp_path: Path) -> None:
    loaded = certificate.load(tmp_path, never)
    made = x509.load_pem_x509_certificate(loaded.chain)
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert sorted(str(name.value) for name in names) == ["127.0.0.1", "::1", "localhost"]
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    made.verify_directly_issued_by(authority(loaded.roots.read_bytes()))


def test_it_is_valid_for_two_years_from_now(tmp_path: Path) -> None:
    made = x509.load_pem_x509_certificate(certificate.load(tmp_path, never).chain)
    now = datetime.now(UTC)
    assert timedelta(hours=23) < now - made.not_valid_before_utc < timedelta(hours=25)
    assert timedelta(days=729) < made.not_valid_after_utc - now < timedelta(days=731)


def test_the_key_of_the_authority_is_kept_nowhere(tmp_path: Path) -> None:
    # Programs trust whatever it signs, for every host.
    loaded = certificate.load(tmp_path, never)
    key = authority(loaded.roots.read_bytes()).public_key()
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert written.count(b"PRIVATE KEY-----") == 2
    assert load_pem_private_key(loaded.private_key, password=None).public_key() != key


def test_the_key_belongs_to_the_certificate(tmp_path: Path) -> None:
    for loaded in (certificate.load(tmp_path, never), certificate.load(tmp_path, never)):
        key = load_pem_private_key(loaded.private_key, password=None).public_key()
        assert x509.load_pem_x509_certificate(loaded.chain).public_key() == key


def test_clients_trust_the_public_roots_too(tmp_path: Path) -> None:
    # The variable that names the file replaces all other roots.
    made = certificate.load(tmp_path, never)
    public = Path(certifi.where()).read_bytes()
    assert public.count(b"BEGIN CERTIFICATE") > 100
    assert made.roots.read_bytes().startswith(public)
    x509.load_pem_x509_certificate(made.chain).verify_directly_issued_by(authority(made.roots.read_bytes()))
    made.roots.write_text("cut off")
    assert certificate.load(tmp_path, never).roots.read_bytes().startswith(public)


def make_readable(path: Path) -> None:
    path.chmod(0o644)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:300])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def lose_authority(path: Path) -> None:
    path.write_bytes(path.read_bytes().rpartition(b"-----BEGIN CERTIFICATE-----")[0])


@pytest.mark.parametrize(
    ("harm", "reason"),
    [(make_readable, "mode 644"), (cut, "damaged"), (empty, "damaged"), (lose_authority, "and its authority")],
)
def test_what_cannot_be_used_is_replaced_and_said(harm: Callable[[Path], None], reason: str, tmp_path: Path) -> None:
    before, lines = certificate.load(tmp_path, never), list[str]()
    harm(tmp_path / "server.pem")
    after = certificate.load(tmp_path, lines.append)
    assert len(lines) == 1
    assert reason in lines[0]
    assert after.private_key != before.private_key
    assert (tmp_path / "server.pem").stat().st_mode & 0o777 == 0o600
    root = authority(after.roots.read_bytes())
    x509.load_pem_x509_certificate(after.chain).verify_directly_issued_by(root)
    with pytest.raises(ValueError, match="Issuer"):
        x509.load_pem_x509_certificate(before.chain).verify_directly_issued_by(root)
    assert certificate.load(tmp_path, never) == after


@pytest.mark.parametrize(("days", "is_kept"), [(300, True), (370, False), (800, False), (-2, False)])
def test_a_certificate_is_renewed_before_it_expires(
    days: int, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(days=days)

    before, lines = certificate.load(tmp_path, never), list[str]()
    monkeypatch.setattr(certificate, "datetime", Later)
    after = certificate.load(tmp_path, lines.append)
    assert (after == before) is is_kept
    assert len(lines) == (0 if is_kept else 1)


def test_a_full_disk_leaves_no_part_of_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        certificate.load(tmp_path, never)
    assert list(tmp_path.iterdir()) == []
