"""Checkpoints are written while training continues, by one process at a time, at Young's interval."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exact_resume.checkpoints import checkpoints
from exact_resume.checkpoints.async_writer import CheckpointWriter, NoCheckpoints, best_interval
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.checkpoints.lease import Lease, NotHolder
from exact_resume.files.publication import Fence

Events = list[tuple[str, dict[str, Any]]]


def checkpoint(step: int, best: Best | None = None) -> Checkpoint:
    best = best or Best()
    return Checkpoint(step=step, best=best, identity={}, run_id="abc", arrays=[np.full(1000, step, np.float32)])


def taken(folder: Path) -> Lease:
    """Take the lease as a process of one job, of which a later one is a restart."""
    lease = Lease(str(folder), "job")
    lease.take({})
    return lease


@pytest.fixture
def logged() -> Events:
    return []


@pytest.fixture
def writer(tmp_path: Path, logged: Events) -> CheckpointWriter:
    return CheckpointWriter(
        str(tmp_path),
        taken(tmp_path),
        keep=2,
        best=Best(),
        saved_step=0,
        log_event=lambda event, **fields: logged.append((event, fields)),
    )


def test_training_continues_while_a_checkpoint_is_written(
    writer: CheckpointWriter, logged: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_continue, save = threading.Event(), checkpoints.save

    def slow_save(directory: str, what: Checkpoint, fence: Fence) -> str:
        may_continue.wait(60)
        return save(directory, what, fence)

    monkeypatch.setattr("exact_resume.checkpoints.checkpoints.save", slow_save)
    best = Best(step=5, accuracy=0.5, loss=1.0)
    writer.write(checkpoint(5, best), pause_seconds=0.25)
    assert writer.is_busy
    assert writer.settle(wait=False) is None
    assert (logged, writer.saved_step, writer.best) == ([], 0, Best())
    may_continue.set()
    assert writer.settle(wait=True) is None
    assert not writer.is_busy
    assert (writer.saved_step, writer.best, writer.pause_seconds) == (5, best, 0.25)
    ((event, fields),) = logged
    assert (event, fields["step"], fields["seconds"], fields["num_bytes"]) == ("save", 5, 0.25, 4000)
    assert fields["write_seconds"] > 0
    assert checkpoints.load(str(tmp_path), 5).best == best
    # Logged once.
    assert writer.settle(wait=True) is None
    assert len(logged) == 1


def test_a_failure_is_logged_and_its_best_does_not_count(
    writer: CheckpointWriter, logged: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.write(checkpoint(5, Best(step=5, accuracy=0.5, loss=1.0)), pause_seconds=0.0)
    writer.settle(wait=True)

    def full(directory: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("exact_resume.files.publication._flush_to_disk", full)
        writer.write(checkpoint(10, Best(step=10, accuracy=0.9, loss=0.1)), pause_seconds=0.0)
        error = writer.settle(wait=True)
    assert error is not None
    assert error.errno == 28
    assert logged[-1][1]["message"] == (
        "the checkpoint of step 10 could not be saved ([Errno 28] No space left on device); the last one is from step 5"
        "; it is the best so far"
    )
    assert (writer.best.step, writer.saved_step) == (5, 5)
    writer.write(checkpoint(15, writer.best), pause_seconds=0.0)
    assert writer.settle(wait=True) is None
    assert writer.saved_step == 15


def test_a_lost_best_keeps_the_checkpoints_from_which_the_next_start_resumes(
    writer: CheckpointWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(directory: Path) -> None:
        raise OSError(28, "No space left on device")

    bests = [Best(step=step, accuracy=step / 100, loss=1.0) for step in (5, 10, 30)]
    best = bests[0]
    for step in range(5, 55, 5):
        best = next((each for each in bests if each.step == step), best)
        with monkeypatch.context() as patch:
            if step in (10, 30):
                patch.setattr("exact_resume.files.publication._flush_to_disk", full)
            writer.write(checkpoint(step, best), pause_seconds=0.0)
            writer.settle(wait=True)
    # 5 is the newest before both. 25 is the newest before the second, but its own best is the first.
    assert checkpoints.steps(str(tmp_path)) == [50, 45, 25, 5]
    found, skipped = checkpoints.newest(str(tmp_path))
    assert found
    assert (found.step, len(skipped)) == (5, 3)
    assert skipped[0].startswith("step-000000050 was skipped: step-000000030, its best so far, is lost: manifest.json")
    # Trained again, perhaps to another score: checkpoints that name the former one do not count.
    checkpoints.save(str(tmp_path), checkpoint(30, Best(step=30, accuracy=0.3, loss=1.5)))
    assert [step for step in (50, 30) if (found := checkpoints.newest(str(tmp_path))[0]) and found.step == step] == [30]


def test_a_checkpoint_from_before_the_run_resumed_is_replaced(tmp_path: Path) -> None:
    for step in (10, 20):
        checkpoints.save(str(tmp_path), checkpoint(step))
    lease = Lease(str(tmp_path), "job")
    lease.take({})
    writer = CheckpointWriter(
        str(tmp_path), lease, keep=2, best=Best(), saved_step=10, log_event=lambda *_, **__: None, passed_over=[20]
    )
    other = Checkpoint(step=20, best=Best(), identity={}, run_id="abc", arrays=[np.zeros(1000, np.float32)])
    writer.write(other, pause_seconds=0.0)
    assert writer.settle(wait=True) is None
    assert not checkpoints.load(str(tmp_path), 20).arrays[0].any()


def test_any_other_error_ends_the_run(
    writer: CheckpointWriter, logged: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(directory: str, what: Checkpoint, fence: Fence) -> None:
        raise MemoryError

    monkeypatch.setattr("exact_resume.checkpoints.checkpoints.save", out_of_memory)
    writer.write(checkpoint(5), pause_seconds=0.0)
    with pytest.raises(MemoryError):
        writer.settle(wait=True)
    assert (writer.saved_step, logged) == (0, [])


def test_a_save_succeeds_even_if_old_checkpoints_cannot_be_removed(
    writer: CheckpointWriter, logged: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(directory: str, **options: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("exact_resume.checkpoints.checkpoints.prune", refuse)
    writer.write(checkpoint(5), pause_seconds=0.0)
    assert writer.settle(wait=True) is None
    assert writer.saved_step == 5
    assert [event for event, _ in logged] == ["notice", "save"]


def test_a_frozen_writer_that_wakes_up_has_lost_its_lease(writer: CheckpointWriter, tmp_path: Path) -> None:
    writer.write(checkpoint(5), pause_seconds=0.0)
    writer.settle(wait=True)
    taken(tmp_path)
    writer.write(checkpoint(10), pause_seconds=0.0)
    with pytest.raises(NotHolder, match="has taken over the run"):
        writer.settle(wait=True)
    assert checkpoints.steps(str(tmp_path)) == [5]


def test_passed_over_checkpoints_are_removed_after_the_next_save_is_committed_and_never_count_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (10, 20, 30):
        checkpoints.save(str(tmp_path), checkpoint(step))
    lease = taken(tmp_path)
    writer = CheckpointWriter(
        str(tmp_path), lease, keep=1, best=Best(), saved_step=10, log_event=lambda *_, **__: None, passed_over=[30, 20]
    )
    with monkeypatch.context() as patch:
        patch.setattr(
            "exact_resume.files.publication._flush_to_disk", lambda directory: (_ for _ in ()).throw(OSError(28, ""))
        )
        writer.write(checkpoint(15), pause_seconds=0.0)
        assert writer.settle(wait=True)
    assert checkpoints.steps(str(tmp_path)) == [30, 20, 10]
    writer.write(checkpoint(15), pause_seconds=0.0)
    assert writer.settle(wait=True) is None
    assert checkpoints.steps(str(tmp_path)) == [15]


def test_old_checkpoints_are_removed_and_the_best_is_kept(writer: CheckpointWriter, tmp_path: Path) -> None:
    best = Best(step=1, accuracy=0.5, loss=1.0)
    for step in range(1, 6):
        writer.write(checkpoint(step, best), pause_seconds=0.0)
        writer.settle(wait=True)
    assert checkpoints.steps(str(tmp_path)) == [5, 4, 1]


def test_a_worker_that_is_not_the_chief_writes_nothing(tmp_path: Path) -> None:
    lease, log = Lease(str(tmp_path)), lambda event, **fields: None
    writer = NoCheckpoints(str(tmp_path), lease, keep=1, best=Best(), saved_step=3, log_event=log)
    writer.write(checkpoint(5), pause_seconds=0.0)
    assert (writer.settle(wait=True), writer.is_busy, writer.saved_step) == (None, False, 3)
    writer.finish()
    assert list(tmp_path.iterdir()) == []


def test_a_late_validation_is_written_into_the_checkpoint_of_its_step(tmp_path: Path) -> None:
    unvalidated = Checkpoint(
        step=2,
        best=Best(),
        identity={},
        run_id="abc",
        arrays=[np.ones(3)],
        is_validated=False,
        extra={"digests": np.array([1, 2**64 - 1], np.uint64), "scaling": {"scale": 8.0, "steps": 2.0}},
    )
    checkpoints.save(str(tmp_path), unvalidated)
    found = checkpoints.load(str(tmp_path), 2)
    assert not found.is_validated
    assert (found.extra["digests"].tolist(), found.extra["scaling"]) == ([1, 2**64 - 1], {"scale": 8.0, "steps": 2.0})
    best = Best(step=2, accuracy=0.5, loss=1.0)
    checkpoints.save(str(tmp_path), checkpoint(2, best))
    found = checkpoints.load(str(tmp_path), 2)
    assert (found.is_validated, found.best, found.arrays[0].tolist()) == (True, best, [1.0, 1.0, 1.0])


def test_the_interval_is_youngs_and_costs_less_than_a_hundredth() -> None:
    assert best_interval(None) == 30
    assert best_interval(0.1) == pytest.approx(37.9, abs=0.1)
    assert best_interval(0.001) == 10
    for pause_seconds in (0.001, 0.01, 0.1, 0.5, 0.7):
        assert pause_seconds / best_interval(pause_seconds) < 0.01


def test_a_foreign_folder_that_is_named_like_a_checkpoint_is_noted_once(
    writer: CheckpointWriter, logged: Events, tmp_path: Path
) -> None:
    foreign = tmp_path / "step-000000001" / "manifest.json"
    foreign.mkdir(parents=True)
    for step in range(2, 11):
        writer.write(checkpoint(step), pause_seconds=0.0)
        assert writer.settle(wait=True) is None
    notices = [fields["message"] for event, fields in logged if event == "notice"]
    assert [event for event, _ in logged].count("save") == 9
    assert len(notices) == 1
    assert "step-000000001" in notices[0]
    assert foreign.exists()
