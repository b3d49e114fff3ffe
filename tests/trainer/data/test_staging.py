"""Datasets of a bucket come to the local disk once, whole, and go on where copying was broken off.

The bucket is TensorFlow's file system under a scheme of its own (file://), read through the same calls as gs://.
"""

import dataclasses
import multiprocessing
import os
import pathlib
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from trainer.data import staging
from trainer.data.examples import load_split
from trainer.errors import TrainingError
from userinput.errors import UserError


@pytest.fixture
def remote(digits, tmp_path, monkeypatch):
    shutil.copytree(digits.directory, tmp_path / "bucket")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return dataclasses.replace(digits, directory=f"file://{tmp_path / 'bucket'}")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_local_dataset_stays_where_it_is(digits):
    assert staging.stage(digits, "train") is digits


def test_a_split_of_a_bucket_is_copied_and_read(remote, digits):
    local = staging.stage(remote, "train")
    assert list(local.records("train")) == list(digits.records("train"))
    assert load_split(remote, "train").labels.numpy().tolist() == [r.label for r in digits.records("train")]
    assert names(staging.directory(digits.fingerprint)) == [".lock", *digits.shards["train"]]


def test_what_is_there_is_not_copied_again_and_what_was_broken_off_goes_on(remote, digits):
    folder = staging.directory(digits.fingerprint)
    (name,) = digits.shards["train"]
    whole = pathlib.Path(digits.directory, name).read_bytes()
    folder.mkdir(parents=True)
    # The first half as the broken-off copy left it; another byte in it would be found in the result.
    (folder / f".{name}.partial").write_bytes(b"!" + whole[1 : len(whole) // 2])
    staging.stage(remote, "train")
    assert (folder / name).read_bytes() == b"!" + whole[1:]
    staging.stage(remote, "train")
    assert (folder / name).read_bytes() == b"!" + whole[1:]
    # One of another size is no copy of it.
    (folder / name).write_bytes(b"short")
    staging.stage(remote, "train")
    assert (folder / name).read_bytes() == whole


def _stage(dataset):
    return staging.stage(dataset, "train").directory


def test_replicas_of_one_machine_share_a_copy(remote, digits):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        places = pool.map(_stage, [remote] * 2)
    with ThreadPoolExecutor(4) as threads:
        places += threads.map(_stage, [remote] * 4)
    assert len(set(places)) == 1
    assert list(dataclasses.replace(digits, directory=places[0]).records("train")) == list(digits.records("train"))
    assert names(staging.directory(digits.fingerprint)) == [".lock", *digits.shards["train"]]


def test_a_missing_shard_and_a_small_disk_are_one_line(remote, tmp_path, monkeypatch):
    missing = dataclasses.replace(remote, shards={**remote.shards, "train": ("no.array_record",)})
    with pytest.raises(UserError, match=r"no\.array_record is missing: .* is incomplete; run prepare again"):
        staging.stage(missing, "train")
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"has 0\.0 GiB free, the dataset needs .* larger boot disk"):
        staging.stage(remote, "train")


def test_a_disk_that_becomes_full_is_said_and_leaves_no_shard(remote, digits, tmp_path):
    """A file that may not grow stands for the full disk: the kernel refuses the write either way."""
    (name,) = digits.shards["train"]
    folder = staging.directory(digits.fingerprint)
    folder.mkdir(parents=True)
    os.symlink("/dev/full", folder / f".{name}.partial")
    with pytest.raises(TrainingError, match=r"filled up while .* was copied to it; free some space and run again"):
        staging.stage(remote, "train")
    assert not (folder / name).exists()
