"""Files and folders appear whole or not at all, on a disk and in a mounted bucket."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.files import publication, storage

ANY = re.compile(".*")


def write_half(final: Path) -> None:
    with publication.committed_directory(final, last="a", own=ANY) as folder:
        (folder / "a").write_text("a")
        raise RuntimeError("in the middle")


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="in the middle"):
        write_half(tmp_path / "out")
    assert os.listdir(tmp_path) == []
    with publication.committed_directory(tmp_path / "deep" / "out", last="a", own=ANY) as folder:
        (folder / "a").write_text("a")
        assert not (tmp_path / "deep" / "out").exists()
    assert (tmp_path / "deep" / "out" / "a").read_text() == "a"


def test_an_empty_folder_is_replaced_and_a_full_one_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with publication.committed_directory(tmp_path / "out", last="a", own=ANY) as folder:
        (folder / "a").write_text("a")
    with pytest.raises(FileExistsError), publication.committed_directory(tmp_path / "out", last="a", own=ANY):
        pass
    assert os.listdir(tmp_path / "out") == ["a"]


def test_a_file_is_replaced_atomically(tmp_path: Path) -> None:
    storage.write_json(tmp_path / "x.json", {"a": "ü"})
    storage.write_json(tmp_path / "x.json", {"a": 2})
    assert storage.read_json(tmp_path / "x.json") == {"a": 2}
    assert os.listdir(tmp_path) == ["x.json"]
    (tmp_path / "x.json").write_text('{"a": ')
    assert storage.read_json(tmp_path / "x.json") is None
    assert storage.read_json(tmp_path / "none.json") is None


def test_the_remains_of_killed_writers_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".step.1.partial").mkdir()
    (tmp_path / ".x.json.2.partial").write_text("")
    (tmp_path / "step").mkdir()
    storage.remove_partial(tmp_path)
    assert os.listdir(tmp_path) == ["step"]


def test_a_folder_may_be_removed_by_several_at_once(tmp_path: Path) -> None:
    start = Barrier(4)

    def remove() -> None:
        start.wait()
        storage.remove_tree(tmp_path / "left")

    for _ in range(10):
        (tmp_path / "left" / "deep").mkdir(parents=True)
        for number in range(100):
            (tmp_path / "left" / "deep" / str(number)).touch()
        with ThreadPoolExecutor(4) as pool:
            for removed in [pool.submit(remove) for _ in range(4)]:
                removed.result()
        assert os.listdir(tmp_path) == []


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is treated as a mounted bucket."""
    monkeypatch.setattr(storage, "is_object_store", lambda path: str(path).startswith(str(tmp_path / "bucket")))
    return tmp_path / "bucket"


def test_the_file_that_marks_a_folder_in_a_bucket_complete_is_copied_last(
    bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    copy = publication._upload_file

    def recorded(source: Path, target: str) -> None:
        copied.append(source.name)
        copy(source, target)

    monkeypatch.setattr(publication, "_upload_file", recorded)
    with publication.committed_directory(bucket / "out", last="a", own=ANY) as folder:
        for name in ("a", "b", "deep/c"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(name)
        assert not bucket.exists()
    assert sorted(copied) == ["a", "b", "c"]
    assert copied[-1] == "a"
    assert (bucket / "out" / "deep" / "c").read_text() == "deep/c"
    with pytest.raises(FileExistsError), publication.committed_directory(bucket / "out", last="a", own=ANY):
        pass


def test_a_checkpoint_whose_upload_was_cut_off_does_not_exist(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def checkpoint(step: int) -> Checkpoint:
        return Checkpoint(step=step, best=Best(), identity={}, run_id="", arrays=[np.zeros(3)])

    checkpoints.save(str(bucket), checkpoint(1))
    copy = publication._upload_file

    def cut_off(source: Path, target: str) -> None:
        if source.name == manifest.MANIFEST_FILE:
            raise OSError("cut off")
        copy(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(publication, "_upload_file", cut_off)
        with pytest.raises(OSError, match="cut off"):
            checkpoints.save(str(bucket), checkpoint(2))
    assert (bucket / manifest.name(2) / checkpoints.VARIABLES_FILE).exists()
    assert checkpoints.steps(str(bucket)) == [1]
    checkpoints.save(str(bucket), checkpoint(2))
    assert checkpoints.newest(str(bucket))[0].step == 2


def test_buckets_are_recognised_by_their_paths() -> None:
    assert storage.is_object_store("gs://bucket/x")
    assert storage.is_object_store("/gcs/bucket/x")
    assert not storage.is_object_store("/home/gcs/x")
    assert not storage.is_object_store("gcs/x")


def test_the_size_of_a_file_is_known_without_reading_it(tmp_path: Path) -> None:
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 10**12)
    assert storage.size(tmp_path / "large") == 10**12
    with pytest.raises(FileNotFoundError):
        storage.size(tmp_path / "none")


def test_what_is_no_regular_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "dataset.json")
    for read in (storage.read_bytes, storage.read_json):
        with pytest.raises(OSError, match="not a regular file") as caught:
            read(tmp_path / "dataset.json")
        assert caught.value.filename == str(tmp_path / "dataset.json")
