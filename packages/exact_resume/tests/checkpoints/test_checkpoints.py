"""Checkpoints are committed as a whole, verified when read, and skipped when damaged."""

import dataclasses
import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exact_resume.checkpoints import checkpoints, manifest, ownership
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.errors import InputError


def checkpoint(step: int, best: Best | None = None, **identity: Any) -> Checkpoint:
    arrays = [np.full((3, 2), step, np.float32), np.array(step, np.int64), np.arange(2, dtype=np.uint32)]
    return Checkpoint(step=step, best=best or Best(), identity={"seed": 0, **identity}, run_id="abc", arrays=arrays)


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    best = Best(step=4, accuracy=0.5, loss=1.25)
    checkpoints.save(str(tmp_path), checkpoint(5, best))
    found = checkpoints.load(str(tmp_path), 5)
    assert (found.step, found.best, found.identity, found.run_id) == (5, best, {"seed": 0}, "abc")
    for one, other in zip(found.arrays, checkpoint(5).arrays, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert checkpoints.digest(found.arrays) == checkpoints.digest(checkpoint(5).arrays)


_SCORES = (Best(step=2, accuracy=0.5, loss=1.25), Best(step=4, accuracy=0.25, loss=1.5))


def test_with_the_metric_accuracy_every_byte_is_as_recorded(tmp_path: Path) -> None:
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3)]
    made = Checkpoint(step=4, best=_SCORES[0], identity={"seed": 0}, run_id="abc", arrays=arrays, validations=_SCORES)
    folder = Path(checkpoints.save(str(tmp_path), made))
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()} == {
        "manifest.json": "20252e273c14ec4a39dab34cf9e23e756eb411b2f799baddd825f6a4dbaa25c4",
        "variables.npz": "66c1322c4fd02d96d3c629630500fce56dd2aa3e8028ccb3679c814f2df07870",
    }


def test_the_score_of_another_metric_comes_back(tmp_path: Path) -> None:
    scores = tuple(dataclasses.replace(each, score=0.5 / each.step) for each in _SCORES)
    made = dataclasses.replace(checkpoint(4, scores[0]), validations=scores)
    checkpoints.save(str(tmp_path), made)
    found = checkpoints.load(str(tmp_path), 4)
    assert (found.best, found.validations) == (scores[0], scores)


def test_more_than_ten_variables_keep_their_order(tmp_path: Path) -> None:
    arrays = [np.array(number) for number in range(123)]
    checkpoints.save(str(tmp_path), Checkpoint(step=1, best=Best(), identity={}, run_id="", arrays=arrays))
    assert [int(array) for array in checkpoints.load(str(tmp_path), 1).arrays] == list(range(123))


@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_a_torn_newest_checkpoint_is_skipped_and_named(tmp_path: Path, damage: str) -> None:
    for step in (5, 10):
        checkpoints.save(str(tmp_path), checkpoint(step))
    path = tmp_path / manifest.name(10) / checkpoints.VARIABLES_FILE
    data = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(data[:-7])
    elif damage == "flip":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    else:
        path.unlink()
    found, skipped = checkpoints.newest(str(tmp_path))
    assert found
    assert found.step == 5
    assert len(skipped) == 1
    assert "step-000000010 is damaged and was skipped" in skipped[0]


def test_a_folder_without_manifest_does_not_count_and_is_replaced(tmp_path: Path) -> None:
    checkpoints.save(str(tmp_path), checkpoint(5))
    folder = tmp_path / manifest.name(10)
    folder.mkdir()
    (folder / checkpoints.VARIABLES_FILE).write_bytes(b"half")
    assert checkpoints.steps(str(tmp_path)) == [5]
    checkpoints.save(str(tmp_path), checkpoint(10))
    assert checkpoints.load(str(tmp_path), 10).step == 10


def test_a_broken_manifest_counts_as_torn(tmp_path: Path) -> None:
    checkpoints.save(str(tmp_path), checkpoint(5))
    checkpoints.save(str(tmp_path), checkpoint(10))
    (tmp_path / manifest.name(10) / manifest.MANIFEST_FILE).write_text('{"step": 10')
    found, _ = checkpoints.newest(str(tmp_path))
    assert found
    assert found.step == 5


def test_a_torn_checkpoint_is_replaced_when_its_step_is_reached_again(tmp_path: Path) -> None:
    checkpoints.save(str(tmp_path), checkpoint(10))
    (tmp_path / manifest.name(10) / checkpoints.VARIABLES_FILE).write_bytes(b"torn")
    checkpoints.save(str(tmp_path), checkpoint(10))
    assert checkpoints.load(str(tmp_path), 10).step == 10


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4, 5, 6):
        checkpoints.save(str(tmp_path), checkpoint(step))
    # A removal that was killed after the manifest.
    (tmp_path / manifest.name(2) / "manifest.json").unlink()
    # Perhaps of a writer that is still busy.
    (tmp_path / manifest.name(7)).mkdir()
    checkpoints.prune(str(tmp_path), keep=2, best_step=3)
    assert checkpoints.steps(str(tmp_path)) == [6, 5, 3]
    assert sorted(os.listdir(tmp_path)) == [manifest.name(step) for step in (3, 5, 6, 7)]


def test_best_is_by_accuracy_then_by_loss() -> None:
    best = Best()
    assert best.is_beaten_by(Best(step=1, accuracy=0.0, loss=9.0))
    best = Best(step=1, accuracy=0.5, loss=1.0)
    assert best.is_beaten_by(Best(step=2, accuracy=0.6, loss=2.0))
    assert best.is_beaten_by(Best(step=2, accuracy=0.5, loss=0.9))
    assert not best.is_beaten_by(Best(step=2, accuracy=0.5, loss=1.0))
    assert not best.is_beaten_by(Best(step=2, accuracy=0.4, loss=0.1))


def test_a_loss_alone_decides_by_its_lower_value() -> None:
    best = Best(step=1, loss=1.0)
    assert best.is_beaten_by(Best(step=2, loss=0.9))
    assert not best.is_beaten_by(Best(step=2, loss=1.0))
    assert Best(**best.to_dict()) == best


def test_the_best_by_another_metric_is_the_highest_score_whatever_its_accuracy() -> None:
    best = Best(step=1, accuracy=0.9, loss=1.0, score=0.5)
    assert best.is_beaten_by(Best(step=2, accuracy=0.1, loss=2.0, score=0.6))
    assert best.is_beaten_by(Best(step=2, accuracy=0.1, loss=0.9, score=0.5))
    assert not best.is_beaten_by(Best(step=2, accuracy=0.1, loss=0.1, score=0.4))


def test_the_best_checkpoint_is_found_or_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no checkpoint in"):
        checkpoints.best(str(tmp_path))
    checkpoints.save(str(tmp_path), checkpoint(1))
    with pytest.raises(InputError, match="has been validated yet"):
        checkpoints.best(str(tmp_path))
    checkpoints.save(str(tmp_path), checkpoint(2, Best(step=1, accuracy=1.0, loss=0.0)))
    assert checkpoints.best(str(tmp_path)).step == 1
    (tmp_path / manifest.name(1) / checkpoints.VARIABLES_FILE).write_bytes(b"x")
    with pytest.raises(InputError, match="is damaged"):
        checkpoints.best(str(tmp_path))


def test_another_run_is_refused_by_naming_the_field() -> None:
    with pytest.raises(InputError, match=r"learning_rate is 0.1 there and 0.2 here") as caught:
        ownership.refuse_other_run(
            {"learning_rate": 0.1, "seed": 0}, {"learning_rate": 0.2, "seed": 0}, "place", defaults={}, way_on="move"
        )
    assert "seed" not in str(caught.value)
    ownership.refuse_other_run({"seed": 0}, {"seed": 0}, "place", defaults={}, way_on="move")


def test_a_save_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints.save(str(tmp_path), checkpoint(5))

    def full(directory: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("exact_resume.files.publication._flush_to_disk", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(str(tmp_path), checkpoint(10))
    assert os.listdir(tmp_path) == [manifest.name(5)]


def test_a_reader_never_sees_a_half_written_checkpoint(tmp_path: Path) -> None:
    done = threading.Event()
    problems: list[str] = []

    def read() -> None:
        while not done.is_set():
            for step in checkpoints.steps(str(tmp_path)):
                try:
                    checkpoints.load(str(tmp_path), step)
                except manifest.TornCheckpoint as error:
                    problems.append(str(error))

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(40):
        checkpoints.save(str(tmp_path), checkpoint(step))
    done.set()
    reader.join()
    assert problems == []


def test_no_pickle_is_read(tmp_path: Path) -> None:
    folder = tmp_path / manifest.name(1)
    folder.mkdir()
    np.savez(folder / "variables.npz", v00000=np.array([{"a": 1}], dtype=object))
    data = (folder / "variables.npz").read_bytes()
    content = {
        "step": 1,
        "best": None,
        "run_id": "",
        "identity": {},
        "extra": {},
        "files": {"variables.npz": {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}},
    }
    manifest.write(folder, content)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        checkpoints.load(str(tmp_path), 1)
