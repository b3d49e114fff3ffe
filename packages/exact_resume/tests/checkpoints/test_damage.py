"""Damage is proven by checksums; an error of reading proves nothing, and no damage costs an intact checkpoint."""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exact_resume.checkpoints import checkpoints, manifest, result_file, seal
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.checkpoints.lease import LEASE_FILE, Lease, identity_of_holder
from exact_resume.errors import InputError
from exact_resume.files import storage

ALWAYS_EIO = Path("/proc/self/mem")
"""Reading from its beginning is an input/output error."""
IDENTITY = {"seed": 0, "learning_rate": 0.1}


def flipped(data: bytes) -> Iterator[bytes]:
    """Yield the data with each of its bits flipped."""
    for number in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[number // 8] ^= 1 << number % 8
        yield bytes(damaged)


def readable(texts: Iterator[bytes]) -> Iterator[Any]:
    """Yield the values of those that are still JSON."""
    for text in texts:
        with contextlib.suppress(ValueError):
            yield json.loads(text)


def checkpoint(step: int, best: Best | None = None) -> Checkpoint:
    return Checkpoint(
        step=step,
        best=best or Best(),
        identity=IDENTITY,
        run_id="abc",
        arrays=[np.full(3, step, np.float32)],
        extra={"digests": np.arange(step, dtype=np.uint64), "scale": step},
    )


def best_at(step: int, accuracy: float) -> Best:
    return Best(step=step, accuracy=accuracy, loss=1.0)


def finish(directory: Path) -> None:
    """Write the result of a run of one step."""
    result_file.write(
        str(directory),
        run_id="abc",
        identity=IDENTITY,
        final_step=1,
        stop_reason="all planned steps are done",
        best_step=1,
    )


def damage(directory: Path, step: int) -> None:
    path = directory / manifest.name(step) / checkpoints.VARIABLES_FILE
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, bool], None]:
    """Make a file unreadable: for good, or until the second attempt."""

    def make(path: Path, passes: bool) -> None:
        aside = path.with_name(f"intact {path.name}")
        path.rename(aside)
        path.symlink_to(ALWAYS_EIO)

        def pause(seconds: float) -> None:
            if passes and path.is_symlink():
                aside.replace(path)

        monkeypatch.setattr("exact_resume.files.storage.time.sleep", pause)

    try:
        with ALWAYS_EIO.open("rb") as file:
            file.read(1)
    except OSError as error:
        is_there = error.errno == errno.EIO
    else:
        is_there = False
    if not is_there:
        pytest.skip("needs a file whose reading fails, /proc/self/mem of Linux")
    return make


def test_no_flipped_bit_of_a_manifest_passes(tmp_path: Path) -> None:
    checkpoints.save(str(tmp_path), checkpoint(220, best_at(110, 0.5)))
    data = (tmp_path / manifest.name(220) / manifest.MANIFEST_FILE).read_bytes()
    intact = manifest.verify(json.loads(data), 220)
    for value in readable(flipped(data)):
        # A flip that only changes the case of an exponent changes nothing.
        with contextlib.suppress(manifest.TornCheckpoint):
            assert manifest.verify(value, 220) == intact


def test_a_manifest_of_another_step_than_its_folder_or_its_arrays_is_passed_over(tmp_path: Path) -> None:
    for step in (5, 10):
        checkpoints.save(str(tmp_path), checkpoint(step))
    shutil.copytree(tmp_path / manifest.name(10), tmp_path / manifest.name(20))
    found, skipped = checkpoints.newest(str(tmp_path))
    assert found
    assert (found.step, "manifest.json is of step 10, but the folder is of step 20" in skipped[0]) == (10, True)
    content = manifest.read(str(tmp_path), 10)
    manifest.write(tmp_path / manifest.name(20), {**content, "step": 20})
    found, skipped = checkpoints.newest(str(tmp_path))
    assert found
    assert (found.step, "variables.npz is of step 10, not 20" in skipped[0]) == (10, True)


def test_no_flipped_bit_of_a_result_or_a_lease_is_believed(tmp_path: Path) -> None:
    checkpoints.save(str(tmp_path), checkpoint(1, best_at(1, 0.5)))
    finish(tmp_path)
    assert result_file.is_finished(str(tmp_path), expected_run_id="abc")
    Lease(str(tmp_path)).take(IDENTITY)
    assert identity_of_holder(str(tmp_path)) == IDENTITY
    for name in (result_file.RESULT_FILE, LEASE_FILE):
        data = (tmp_path / name).read_bytes()
        intact = json.loads(data)
        for value in readable(flipped(data)):
            assert not isinstance(value, dict) or value == intact or not seal.is_intact(value)


def test_a_checkpoint_of_an_earlier_version_is_refused_and_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    checkpoints.save(str(tmp_path), checkpoint(1))
    path = tmp_path / manifest.name(1) / manifest.MANIFEST_FILE
    content = seal.without(json.loads(path.read_text()))
    del content["validations"]
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="step-000000001 is a checkpoint of an earlier version"):
        checkpoints.newest(str(tmp_path))
    assert path.exists()


def test_a_damaged_result_or_lease_counts_as_missing(tmp_path: Path) -> None:
    checkpoints.save(str(tmp_path), checkpoint(1, best_at(1, 0.5)))
    Lease(str(tmp_path)).take(IDENTITY)
    content = seal.add_seal({"run_id": "abc", "best_step": 1, "best_checkpoint": manifest.name(1)})
    storage.write_json(tmp_path / result_file.RESULT_FILE, content)
    assert result_file.is_finished(str(tmp_path))
    for name, field in ((result_file.RESULT_FILE, "best_step"), (LEASE_FILE, "identity")):
        storage.write_json(tmp_path / name, {**storage.read_json(tmp_path / name), field: 2})
    assert (result_file.is_finished(str(tmp_path)), identity_of_holder(str(tmp_path))) == (False, None)


@pytest.mark.parametrize("name", [checkpoints.VARIABLES_FILE, manifest.MANIFEST_FILE])
def test_a_passing_read_error_is_retried(tmp_path: Path, name: str, unreadable: Callable[[Path, bool], None]) -> None:
    for step in (5, 10):
        checkpoints.save(str(tmp_path), checkpoint(step))
    unreadable(tmp_path / manifest.name(10) / name, True)
    found, skipped = checkpoints.newest(str(tmp_path))
    assert found
    assert (found.step, skipped) == (10, [])


@pytest.mark.parametrize("name", [checkpoints.VARIABLES_FILE, manifest.MANIFEST_FILE])
def test_a_lasting_read_error_passes_nothing_over_and_replaces_nothing(
    tmp_path: Path, name: str, unreadable: Callable[[Path, bool], None]
) -> None:
    for step in (5, 10):
        checkpoints.save(str(tmp_path), checkpoint(step, best_at(step, 0.5)))
    unreadable(tmp_path / manifest.name(10) / name, False)
    before = sorted(path for path in tmp_path.rglob("*"))
    for read in (
        lambda: checkpoints.newest(str(tmp_path)),
        lambda: checkpoints.best(str(tmp_path)),
        # A save of the same step reads the one that is there.
        lambda: checkpoints.save(str(tmp_path), checkpoint(10)),
    ):
        with pytest.raises(OSError, match="Input/output error"):
            read()
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_a_finished_run_whose_checkpoint_cannot_be_read_is_not_trained_again(
    tmp_path: Path, unreadable: Callable[[Path, bool], None]
) -> None:
    checkpoints.save(str(tmp_path), checkpoint(1, best_at(1, 0.5)))
    finish(tmp_path)
    assert result_file.is_finished(str(tmp_path))
    unreadable(tmp_path / manifest.name(1) / checkpoints.VARIABLES_FILE, False)
    with pytest.raises(OSError, match="Input/output error"):
        result_file.is_finished(str(tmp_path))


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: object) -> list[str]:
        raise OSError(5, "Input/output error", path)

    monkeypatch.setattr("exact_resume.files.storage.time.sleep", lambda seconds: None)
    for name in ("listdir", "stat"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="Input/output error"):
                storage.names(tmp_path) if name == "listdir" else storage.exists(tmp_path)


def test_a_checkpoint_whose_best_one_is_damaged_is_passed_over_and_kept(tmp_path: Path) -> None:
    checkpoints.save(str(tmp_path), checkpoint(5, best_at(5, 0.5)))
    checkpoints.save(str(tmp_path), checkpoint(10, best_at(10, 0.9)))
    for step in (15, 20):
        checkpoints.save(str(tmp_path), checkpoint(step, best_at(10, 0.9)))
    damage(tmp_path, 10)
    found, skipped = checkpoints.newest(str(tmp_path))
    assert found
    assert (found.step, found.best) == (5, best_at(5, 0.5))
    assert skipped[0].startswith("step-000000020 was skipped: step-000000010, its best so far, is lost: ")
    assert skipped[2].startswith("step-000000010 is damaged and was skipped: ")
    damage(tmp_path, 5)
    found, skipped = checkpoints.newest(str(tmp_path))
    assert (found, len(skipped)) == (None, 4)
    assert checkpoints.steps(str(tmp_path)) == [20, 15, 10, 5]


def test_the_best_of_the_checkpoints_that_are_left(tmp_path: Path) -> None:
    scores = [best_at(5, 0.5), best_at(10, 0.9), best_at(15, 0.8), best_at(20, 0.7)]
    for score in scores:
        checkpoints.save(str(tmp_path), checkpoint(score.step, score if score.step < 15 else scores[1]))
    assert checkpoints.best_kept(str(tmp_path), scores[1], scores) == scores[1]
    damage(tmp_path, 10)
    assert checkpoints.best_kept(str(tmp_path), scores[1], scores) == scores[2]
    damage(tmp_path, 15)
    assert checkpoints.best_kept(str(tmp_path), scores[1], scores) == scores[3]
