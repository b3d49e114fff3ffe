import threading

import numpy as np
import pytest

from trainer.checkpoints import checkpoints
from trainer.checkpoints import interval as checkpoint_interval
from trainer.checkpoints.checkpoints import Best, Checkpoint
from trainer.checkpoints.lease import Owner
from trainer.checkpoints.writer import CheckpointWriter, NoCheckpoints
from trainer.errors import TrainingError


def checkpoint(step, best=None):
    best = best or Best()
    return Checkpoint(step=step, best=best, identity={}, run_id="abc", arrays=[np.full(1000, step, np.float32)])


@pytest.fixture
def told():
    return []


@pytest.fixture
def writer(tmp_path, told):
    return CheckpointWriter(
        str(tmp_path), Owner(str(tmp_path)), keep=2, best=Best(), saved_step=0,
        observe=lambda event, **fields: told.append((event, fields)),
    )  # fmt: skip


def test_training_goes_on_while_a_checkpoint_is_written(writer, told, tmp_path, monkeypatch):
    may_go_on, save = threading.Event(), checkpoints.save

    def slow_save(directory, what):
        may_go_on.wait(60)
        return save(directory, what)

    monkeypatch.setattr("trainer.checkpoints.checkpoints.save", slow_save)
    best = Best(step=5, accuracy=0.5, loss=1.0)
    writer.write(checkpoint(5, best), stood_still_seconds=0.25)
    assert writer.is_busy
    assert writer.settle(wait=False) is None
    assert (told, writer.saved_step, writer.best) == ([], 0, Best())
    may_go_on.set()
    assert writer.settle(wait=True) is None
    assert not writer.is_busy
    assert (writer.saved_step, writer.best, writer.save_seconds) == (5, best, 0.25)
    ((event, fields),) = told
    assert (event, fields["step"], fields["seconds"], fields["num_bytes"]) == ("save", 5, 0.25, 4000)
    assert fields["write_seconds"] > 0
    assert checkpoints.load(str(tmp_path), 5).best == best
    # Told once.
    assert writer.settle(wait=True) is None
    assert len(told) == 1


def test_a_failure_is_told_and_its_best_does_not_count(writer, told, monkeypatch):
    writer.write(checkpoint(5, Best(step=5, accuracy=0.5, loss=1.0)), stood_still_seconds=0.0)
    writer.settle(wait=True)

    def full(directory):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("trainer.files.storage._flush_to_disk", full)
        writer.write(checkpoint(10, Best(step=10, accuracy=0.9, loss=0.1)), stood_still_seconds=0.0)
        error = writer.settle(wait=True)
    assert error.errno == 28
    assert told[-1][1]["message"] == (
        "the checkpoint of step 10 could not be saved ([Errno 28] No space left on device); the last one is of step 5"
    )
    assert (writer.best.step, writer.saved_step) == (5, 5)
    writer.write(checkpoint(15, writer.best), stood_still_seconds=0.0)
    assert writer.settle(wait=True) is None
    assert writer.saved_step == 15


def test_what_is_no_error_of_a_file_ends_the_run(writer, told, monkeypatch):
    def out_of_memory(directory, what):
        raise MemoryError

    monkeypatch.setattr("trainer.checkpoints.checkpoints.save", out_of_memory)
    writer.write(checkpoint(5), stood_still_seconds=0.0)
    with pytest.raises(MemoryError):
        writer.settle(wait=True)
    assert (writer.saved_step, told) == (0, [])


def test_old_checkpoints_that_stay_do_not_make_a_save_fail(writer, told, monkeypatch):
    def refuse(directory, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("trainer.checkpoints.checkpoints.prune", refuse)
    writer.write(checkpoint(5), stood_still_seconds=0.0)
    assert writer.settle(wait=True) is None
    assert writer.saved_step == 5
    assert [event for event, _ in told] == ["notice", "save"]


def test_a_frozen_writer_that_wakes_up_leaves_the_run_to_its_successor(writer, tmp_path):
    writer.write(checkpoint(5), stood_still_seconds=0.0)
    writer.settle(wait=True)
    Owner(str(tmp_path))
    writer.write(checkpoint(10), stood_still_seconds=0.0)
    with pytest.raises(TrainingError, match="another process trains the run"):
        writer.settle(wait=True)
    assert checkpoints.steps(str(tmp_path)) == [5]


def test_what_was_passed_over_does_not_count_again(tmp_path):
    for step in (10, 20, 30):
        checkpoints.save(str(tmp_path), checkpoint(step))
    checkpoints.remove_newer(str(tmp_path), 10)
    assert checkpoints.steps(str(tmp_path)) == [10]


def test_old_checkpoints_go_and_the_best_stays(writer, tmp_path):
    best = Best(step=1, accuracy=0.5, loss=1.0)
    for step in range(1, 6):
        writer.write(checkpoint(step, best), stood_still_seconds=0.0)
        writer.settle(wait=True)
    assert checkpoints.steps(str(tmp_path)) == [5, 4, 1]


def test_a_worker_that_is_not_the_chief_writes_nothing(tmp_path):
    writer = NoCheckpoints(best=Best(), saved_step=3)
    writer.write(checkpoint(5), stood_still_seconds=0.0)
    assert (writer.settle(wait=True), writer.is_busy, writer.saved_step) == (None, False, 3)
    assert list(tmp_path.iterdir()) == []


def test_a_validation_that_was_made_up_for_is_written_into_the_checkpoint_of_its_step(tmp_path):
    unvalidated = Checkpoint(
        step=5, best=Best(), identity={}, run_id="abc", arrays=[np.ones(3)], is_validated=False,
        batch_digests=np.array([1, 2**64 - 1], np.uint64), loss_scaling={"scale": 8.0, "steps": 2.0},
    )  # fmt: skip
    checkpoints.save(str(tmp_path), unvalidated)
    found = checkpoints.load(str(tmp_path), 5)
    assert (found.is_validated, found.batch_digests.tolist(), found.loss_scaling) == (
        False, [1, 2**64 - 1], {"scale": 8.0, "steps": 2.0},
    )  # fmt: skip
    best = Best(step=5, accuracy=0.5, loss=1.0)
    checkpoints.save(str(tmp_path), checkpoint(5, best))
    found = checkpoints.load(str(tmp_path), 5)
    assert (found.is_validated, found.best, found.arrays[0].tolist()) == (True, best, [1.0, 1.0, 1.0])


def test_the_interval_is_youngs_and_costs_less_than_a_hundredth():
    assert checkpoint_interval.seconds(None) == 30
    assert checkpoint_interval.seconds(0.1, 7200) == pytest.approx(37.9, abs=0.1)
    assert checkpoint_interval.seconds(0.001) == 10
    for save_seconds in (0.001, 0.01, 0.1, 0.5, 0.7):
        assert save_seconds / checkpoint_interval.seconds(save_seconds) < 0.01
