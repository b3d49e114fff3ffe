"""A dataset that is made with the help of the previous one has the bytes of one that is made from the start."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cloud_storage.server import CloudStorage
from tests.support.growing import InBucket, Local, Place, change, content, fill, png, run
from trainer.data.preparing import prefixes
from trainer.data.preparing.earlier import known
from trainer.data.sources import folder, opening

NOTHING_READ = "note: 0 images read"


@pytest.fixture(autouse=True)
def many_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several shards per split; files count as unchanged at once, because no test changes one twice in a moment."""
    monkeypatch.setattr(prefixes, "TARGET_BYTES", 5000)
    monkeypatch.setattr(known, "SETTLING_NS", 0)


@pytest.fixture
def local(tmp_path: Path) -> Local:
    place = Local(tmp_path)
    fill(place)
    return place


@pytest.fixture
def in_bucket(server: CloudStorage) -> InBucket:
    place = InBucket(server)
    fill(place)
    return place


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The locations that are read, in place of what the metadata has."""
    found: list[str] = []

    def counted(look: Callable[[str], bytes]) -> Callable[[str], bytes]:
        return lambda location: (found.append(location), look(location))[1]

    monkeypatch.setattr(folder, "read", counted(folder.read))
    monkeypatch.setattr(opening, "read", counted(opening.read))
    return found


def check_sequence(place: Place, seed: int, num_steps: int) -> None:
    """After each change, the next dataset has the bytes of one that was made by reading all images."""
    rng = random.Random(seed)
    run(place, "0")
    for step in range(1, num_steps + 1):
        kinds = [change(place, rng) for _ in range(rng.randrange(5))]
        place.copy_tree("root", f"full-root{step}")
        run(place, str(step))
        full = {"pipeline_root": f"{place.address}/full-root{step}", "reread": True}
        run(place, f"full{step}", **full)
        assert content(place, str(step)) == content(place, f"full{step}"), (seed, step, kinds)


def test_changed_sources_give_the_bytes_of_a_full_run(local: Local) -> None:
    check_sequence(local, seed=1, num_steps=3)


def test_changed_sources_in_a_bucket_give_the_bytes_of_a_full_run(in_bucket: InBucket) -> None:
    check_sequence(in_bucket, seed=2, num_steps=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 116))
def test_random_changes(local: Local, seed: int) -> None:
    check_sequence(local, seed, num_steps=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 204))
def test_random_changes_in_a_bucket(in_bucket: InBucket, server: CloudStorage, seed: int) -> None:
    server.faults.num_rewrite_calls = 3
    check_sequence(in_bucket, seed, num_steps=2)


def test_only_new_images_are_read_and_untouched_shards_are_the_same_files(
    local: Local, read: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = run(local, "one")
    assert metadata["num_read"] == len(read) == 24
    assert metadata["num_bytes_reused"] == 0
    before = content(local, "one")
    read.clear()
    local.write("source/a/new.png", png(9999))
    metadata = run(local, "two")
    assert read == [f"{local.address}/source/a/new.png"]
    assert metadata["num_read"] == 1
    first, second = inodes(local.folder / "one"), inodes(local.folder / "two")
    shared = first.keys() & second.keys()
    assert 0 < len(shared) < len(first)
    assert metadata["num_bytes_reused"] == sum(first[inode].stat().st_size for inode in shared)
    written = [path for inode, path in second.items() if inode not in shared]
    everything = (local.folder / "two").iterdir()
    others = [path for path in everything if path.suffix or "array_record" not in path.name]
    assert metadata["num_bytes_written"] >= sum(path.stat().st_size for path in written)
    assert f"note: 1 images read, {metadata['num_bytes_written']:,} bytes written" in capsys.readouterr().err
    assert others
    # What the two share was not written to.
    assert content(local, "one") == before


def inodes(directory: Path) -> dict[int, Path]:
    return {path.stat().st_ino: path for path in directory.glob("*.array_record*")}
