"""Addresses in manifests: relative and absolute ones, and what a manifest cannot make prepare read or write."""

import os
import posixpath
from pathlib import Path

import pytest

from trainer.data.sources import opening
from trainer.data.sources.manifests import addresses
from trainer.data.sources.manifests.lines import BadLine


@pytest.mark.parametrize(
    ("address", "base", "location", "name"),
    [
        ("gs://images/a/1.jpg", "/data", "gs://images/a/1.jpg", "a/1.jpg"),
        ("gs://images/a/1.jpg", "gs://other/export", "gs://images/a/1.jpg", "a/1.jpg"),
        ("gs://images//etc/1.jpg", "/data", "gs://images//etc/1.jpg", "etc/1.jpg"),
        ("gs://images/no ending ü?#%", "/data", "gs://images/no ending ü?#%", "no ending ü?#%"),
        ("a/1.jpg", "gs://images", "gs://images/a/1.jpg", "a/1.jpg"),
        ("./a//1.jpg", "gs://images/export", "gs://images/export/a/1.jpg", "export/a/1.jpg"),
        ("../a/1.jpg", "gs://images/export", "gs://images/a/1.jpg", "a/1.jpg"),
        ("a/1.jpg", "/data", "/data/a/1.jpg", "a/1.jpg"),
        ("../a/1.jpg", "/data/export", "/data/a/1.jpg", "data/a/1.jpg"),
        ("/other/1.jpg", "/data", "/other/1.jpg", "other/1.jpg"),
        ("//other/1.jpg", "/data", "/other/1.jpg", "other/1.jpg"),
        ("../../../../../etc/1.jpg", "/data/export", "/etc/1.jpg", "etc/1.jpg"),
        ("~/1.jpg", "/data", "/data/~/1.jpg", "~/1.jpg"),
        ("a:b.jpg", "/", "/a:b.jpg", "a:b.jpg"),
        ("/dev/shm/1.jpg", "/data", "/dev/shm/1.jpg", "dev/shm/1.jpg"),
    ],
)
def test_an_address(address: str, base: str, location: str, name: str) -> None:
    assert addresses.resolve(address, base) == (location, name)
    # Joined to a folder, a name is in this folder.
    assert posixpath.normpath(posixpath.join("/out", name)).startswith("/out/")


def test_a_folder_replaces_all_buckets_in_a_local_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALVERTEX_GCS_ROOT", f"{tmp_path}/")
    (tmp_path / "images" / "a").mkdir(parents=True)
    (tmp_path / "images" / "a" / "1.jpg").write_bytes(b"x")
    # The names in the records are those of the bucket.
    assert addresses.resolve("gs://images/a/1.jpg", "/data") == (f"{tmp_path}/images/a/1.jpg", "a/1.jpg")
    assert opening.read(addresses.resolve("gs://images/a/1.jpg", "/data")[0]) == b"x"
    assert addresses.resolve("a/1.jpg", "/data") == ("/data/a/1.jpg", "a/1.jpg")
    for address in ("gs://images/../secret.jpg", "gs://../secret.jpg", "gs://UPPER/1.jpg"):
        with pytest.raises(BadLine):
            addresses.resolve(address, "/data")


@pytest.mark.parametrize(
    ("address", "base", "expected"),
    [
        ("gs://", "/data", "'gs://' names no bucket"),
        ("gs://images", "/data", "'gs://images' names no object"),
        ("gs://images/", "/data", "names no object"),
        ("gs://images/folder/", "/data", "names no object"),
        ("gs:/images/1.jpg", "/data", "gs: is not read"),
        ("GS://images/1.jpg", "/data", "gs: is not read"),
        ("gs://UPPER/1.jpg", "/data", "names no bucket"),
        ("gs://images/../../etc/1.jpg", "/data", "has . or .. as a folder"),
        ("gs://images/a/./1.jpg", "/data", "has . or .. as a folder"),
        (f"gs://images/{'x' * 1025}", "/data", "a name of more than 1,024 bytes"),
        ("http://example.com/1.jpg", "/data", "http: is not read; expected gs://BUCKET/NAME or a path"),
        ("s3://images/1.jpg", "gs://images", "s3: is not read"),
        ("file:///etc/1.jpg", "/data", "file: is not read"),
        ("file:1.jpg", "/data", "file: is not read"),
        ("data:image/png;base64,AAAA", "/data", "data: is not read"),
        ("/home/user/1.jpg", "gs://images", "a local path in a manifest on gs://"),
        ("~/1.jpg", "gs://images", "a local path in a manifest on gs://"),
        ("../../1.jpg", "gs://images/export", "leads out of the bucket"),
        ("..", "gs://images/export", "has . or .. as a folder"),
        ("/proc/self/environ", "/data", "belongs to the operating system"),
        ("../../proc/self/environ", "/data/export", "belongs to the operating system"),
        ("/dev/zero", "/data", "belongs to the operating system"),
        ("//dev/zero", "/data", "belongs to the operating system"),
        ("/", "/data", "is a folder"),
        (f"/{'x/' * 3000}", "/data", "a path of more than 4,095 bytes"),
        ("a\0b.jpg", "/data", "control character"),
        ("a\ud800.jpg", "/data", "control character"),
        ("a\n.jpg", "gs://images", "control character"),
        ("gs://images/1.HEIC", "/data", "HEIC is not read; convert it to JPEG"),
    ],
)
def test_a_bad_address(address: str, base: str, expected: str) -> None:
    with pytest.raises(BadLine) as caught:
        addresses.resolve(address, base)
    assert expected in str(caught.value)


def test_links_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "system.jpg").symlink_to("/proc/self/environ")
    (tmp_path / "kernel").symlink_to("/proc/self")
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "good.jpg").write_bytes(b"x")
    (tmp_path / "linked.jpg").symlink_to("good.jpg")
    for name in ("system.jpg", "kernel/environ", "pipe.jpg", "folder.jpg", "missing.jpg"):
        with pytest.raises(OSError, match=r"."):
            opening.read(str(tmp_path / name))
    assert opening.read(str(tmp_path / "linked.jpg")) == b"x"
