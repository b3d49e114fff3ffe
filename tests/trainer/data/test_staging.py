"""Datasets in a bucket are copied to the local disk once and completely; an interrupted copy is made again."""

import dataclasses
import multiprocessing
import os
import pathlib
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from localvertex._base.userinput.errors import UserError
from trainer.command_line import TrainingError
from trainer.data import staging
from trainer.data.dataset import Dataset
from trainer.data.examples import load_split
from trainer.data.stored.shards import DamagedShard
from vertex_testing.cloud_storage.server import CloudStorage


@pytest.fixture
def remote(
    digits: Dataset, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, cloud_storage: CloudStorage
) -> Dataset:
    """The digits in a bucket, and an empty cache."""
    for name, value in (cloud_storage.environment | {"XDG_CACHE_HOME": str(tmp_path / "cache")}).items():
        monkeypatch.setenv(name, value)
    cloud_storage.faults.clear()
    cloud_storage.buckets.create("staging")
    for path in pathlib.Path(digits.directory).iterdir():
        cloud_storage.buckets.put("staging", f"digits/{path.name}", path.read_bytes())
    return dataclasses.replace(digits, directory="gs://staging/digits")


def names(folder: pathlib.Path) -> list[str]:
    """The names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_a_local_dataset_is_not_copied(digits: Dataset) -> None:
    assert staging.stage(digits, "train") is digits


def test_a_split_of_a_bucket_is_copied_and_read(remote: Dataset, digits: Dataset) -> None:
    local = staging.stage(remote, "train")
    assert list(local.records("train")) == list(digits.records("train"))
    assert load_split(remote, "train").labels.numpy().tolist() == [r.label for r in digits.records("train")]
    assert names(staging.directory(digits.fingerprint)) == [".lock", *(shard.name for shard in digits.shards["train"])]


def test_a_finished_copy_is_reused_and_an_interrupted_one_made_again(
    remote: Dataset, digits: Dataset, cloud_storage: CloudStorage
) -> None:
    folder = staging.directory(digits.fingerprint)
    (name,) = (shard.name for shard in digits.shards["train"])
    whole = pathlib.Path(digits.directory, name).read_bytes()
    folder.mkdir(parents=True)
    # As an interrupted copy left it.
    (folder / f".{name}.partial").write_bytes(b"!" + whole[1 : len(whole) // 2])
    staging.stage(remote, "train")
    assert (folder / name).read_bytes() == whole
    assert not (folder / f".{name}.partial").exists()
    # The one of the bucket has changed, which shows that it is not read.
    cloud_storage.buckets.put("staging", f"digits/{name}", b"!" + whole[1:])
    staging.stage(remote, "train")
    assert (folder / name).read_bytes() == whole
    # A file of another size is not a copy.
    cloud_storage.buckets.put("staging", f"digits/{name}", whole)
    (folder / name).write_bytes(b"short")
    staging.stage(remote, "train")
    assert (folder / name).read_bytes() == whole


@pytest.mark.parametrize("damaged_at", [0, 20_000])
def test_a_copy_with_another_checksum_never_appears(
    remote: Dataset, digits: Dataset, cloud_storage: CloudStorage, damaged_at: int
) -> None:
    folder = staging.directory(digits.fingerprint)
    (name,) = (shard.name for shard in digits.shards["train"])
    whole = pathlib.Path(digits.directory, name).read_bytes()
    torn = whole[:damaged_at] + bytes([whole[damaged_at] ^ 1]) + whole[damaged_at + 1 :]
    cloud_storage.buckets.put("staging", f"digits/{name}", torn)
    with pytest.raises(DamagedShard, match=f"^shard gs://.*{name} is damaged .its CRC32C is .*run prepare again$"):
        staging.stage(remote, "train")
    assert names(folder) == [".lock"]


def _stage(dataset: Dataset) -> str:
    return staging.stage(dataset, "train").directory


@pytest.mark.slow
def test_replicas_of_one_machine_share_a_copy(remote: Dataset, digits: Dataset) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        directories = pool.map(_stage, [remote] * 2)
    with ThreadPoolExecutor(4) as threads:
        directories += threads.map(_stage, [remote] * 4)
    assert len(set(directories)) == 1
    copy = dataclasses.replace(digits, directory=directories[0])
    assert list(copy.records("train")) == list(digits.records("train"))
    assert names(staging.directory(digits.fingerprint)) == [".lock", *(shard.name for shard in digits.shards["train"])]


def test_a_missing_shard_and_a_small_disk_are_one_line(
    remote: Dataset, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = (dataclasses.replace(remote.shards["train"][0], name="no.array_record"),)
    missing = dataclasses.replace(remote, shards={**remote.shards, "train": gone})
    with pytest.raises(UserError, match=r"no\.array_record is missing: .* is incomplete; run prepare again"):
        staging.stage(missing, "train")
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"has 0\.0 GiB free, the dataset needs .* larger boot disk"):
        staging.stage(remote, "train")


def test_a_disk_that_fills_up_is_reported_and_leaves_no_shard(remote: Dataset, digits: Dataset) -> None:
    """A file that cannot grow replaces the full disk: the kernel refuses the write either way."""
    (name,) = (shard.name for shard in digits.shards["train"])
    folder = staging.directory(digits.fingerprint)
    folder.mkdir(parents=True)
    os.symlink("/dev/full", folder / f".{name}.partial")
    with pytest.raises(TrainingError, match=r"filled up while .* was copied to it; free some space and run again"):
        staging.stage(remote, "train")
    assert not (folder / name).exists()
