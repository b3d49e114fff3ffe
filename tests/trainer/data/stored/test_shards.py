"""A damaged shard is one line with its name; an error of the disk is not taken for damage."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from trainer.data import dataset
from trainer.data.stored.shards import DamagedShard, damage_named

IN_A_RECORD = 5000
"""Position in a shard of small images."""


def flipped(data: bytes) -> bytes:
    return data[:IN_A_RECORD] + bytes([data[IN_A_RECORD] ^ 0xFF]) + data[IN_A_RECORD + 1 :]


def copy(source: Path, folder: Path, damage: Callable[[bytes], bytes]) -> Path:
    shutil.copytree(source, folder)
    (shard,) = folder.glob("images-test.array_record-*")
    shard.write_bytes(damage(shard.read_bytes()))
    return shard


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: b"text", lambda data: data[: len(data) // 2], lambda data: b"\0" * 2**17]
)
def test_a_file_that_is_no_shard_is_named_when_it_is_opened(
    digits_directory: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    shard = copy(digits_directory, tmp_path / "data", damage)
    data = dataset.load(str(tmp_path / "data"))
    data.check_shards("train", "validation")
    with pytest.raises(DamagedShard, match=f"^shard {shard} is damaged \\(.+\\); run prepare again") as caught:
        data.check_shards("test")
    assert "\n" not in str(caught.value)


def test_a_flipped_bit_is_found_when_the_record_is_read(digits_directory: Path, tmp_path: Path) -> None:
    shard = copy(digits_directory, tmp_path / "data", flipped)
    data = dataset.load(str(tmp_path / "data"))
    data.check_shards("test")
    with pytest.raises(DamagedShard, match=f"^shard {shard} is damaged .*hash mismatch"):
        list(data.records("test"))


def test_the_shard_of_another_split_has_another_number_of_records(digits_directory: Path, tmp_path: Path) -> None:
    shard = copy(digits_directory, tmp_path / "data", lambda data: data)
    shutil.copy(next((tmp_path / "data").glob("images-train.*")), shard)
    with pytest.raises(DamagedShard, match=r"damaged \(\d+ records instead of \d+\)"):
        dataset.load(str(tmp_path / "data")).check_shards("test")


def test_the_error_is_found_in_one_of_tensorflow_and_others_pass() -> None:
    text = "UnknownError: DamagedShard: shard /x is damaged (y); run prepare again\nTraceback (most recent call last):"
    with pytest.raises(DamagedShard, match=r"^shard /x is damaged \(y\); run prepare again$"), damage_named():
        raise RuntimeError(text)
    with pytest.raises(RuntimeError, match="another"), damage_named():
        raise RuntimeError("another")
