"""The TensorBoard logs of a process: names, what is bounded, and what a failure costs."""

import threading
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from trainer.loop.board import MAX_POINTS, Board, EventFile, run_name

POINT = {"loss": 0.5, "accuracy": 0.75, "learning_rate": 0.001, "images_per_second": 100.0}
START = {"num_steps": 20}


def steps_in(folder: Path) -> list[int]:
    """Return the steps of the points in the files of a folder, as a program of others reads them."""
    return [event.step for event in curves_in(folder).Tensors("loss")]


def curves_in(folder: Path) -> EventAccumulator:
    """Return all points in the files of a folder, including those that a later start repeats."""
    return EventAccumulator(str(folder), size_guidance={"tensors": 0}, purge_orphaned_data=False).Reload()


def log_points(board: Board, steps: range) -> None:
    board("start", num_steps=steps[-1])
    for step in steps:
        board("steps", last_step=step, **POINT)
    board("exit", code=0)


@pytest.mark.parametrize(
    ("label", "model", "name"),
    [
        ("", "convnet", "convnet"),
        ("Second try!", "convnet", "second-try"),
        ("", "my.networks:Small_Net", "my-networks-small-net"),
        ("二回目", "resnet50", "resnet50"),
        ("../..", "../..", "run"),
        ("a" * 99 + " b", "convnet", "a" * 99),
    ],
)
def test_a_run_has_the_name_of_its_label_or_model_in_the_characters_of_vertex(
    label: str, model: str, name: str
) -> None:
    assert run_name(label, model) == name
    assert len(f"{name}/validation") <= 128


def test_a_long_run_has_a_bounded_number_of_points(tmp_path: Path) -> None:
    board, last_step = Board(str(tmp_path)), 30 * MAX_POINTS + 7
    board("start", num_steps=last_step)
    for step in (*range(1, last_step, 10), last_step):
        board("steps", last_step=step, **POINT)
        board("evaluate", step=step, **POINT)
    board("exit", code=0)
    for folder in (tmp_path / "train", tmp_path / "validation"):
        steps = steps_in(folder)
        assert MAX_POINTS * 0.7 < len(steps) <= MAX_POINTS + 1
        assert (steps[0], steps[-1]) == (1, last_step)
        assert sum(path.stat().st_size for path in folder.iterdir()) < 500_000


def test_the_chosen_metric_has_a_curve_beside_accuracy(tmp_path: Path) -> None:
    board = Board(str(tmp_path))
    board("start", num_steps=4)
    for step, score in ((2, 0.25), (4, 0.5)):
        board("evaluate", step=step, **POINT, metric="macro-f1", score=score)
    board("exit", code=0)
    curves = curves_in(tmp_path / "validation")
    assert sorted(curves.Tags()["tensors"]) == ["accuracy", "loss", "macro-f1"]
    points = [(event.step, float(make_ndarray(event.tensor_proto))) for event in curves.Tensors("macro-f1")]
    assert points == [(2, 0.25), (4, 0.5)]


def test_what_a_full_disk_refused_is_written_when_it_has_space_again(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    file = EventFile(str(tmp_path / "run"), 1)
    file.add({"loss": 0.5}, 1)
    with pytest.raises(OSError, match="run"):
        file.flush()
    (tmp_path / "run").unlink()
    file.add({"loss": 0.5}, 2)
    file.flush()
    file.flush()
    assert steps_in(tmp_path / "run") == [1, 2]


def test_a_folder_that_cannot_be_used_costs_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train").write_text("in the way")
    board = Board(str(tmp_path))
    log_points(board, range(1, 20))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("TensorBoard logs cannot be written (")
    assert line.endswith("); training continues")


def test_a_bucket_that_hangs_does_not_stop_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, flush = threading.Event(), EventFile.flush
    monkeypatch.setattr(EventFile, "flush", lambda file: (hangs.wait(60), flush(file))[1])
    board = Board(str(tmp_path))
    board("start", **START)
    for step in range(3 * MAX_POINTS):
        board("steps", last_step=step + 1, **POINT)
    hangs.set()
    board("exit", code=0)
    assert steps_in(tmp_path / "train")[0] == 1


def test_nothing_is_written_before_the_start(tmp_path: Path) -> None:
    Board(str(tmp_path / "run"))("exit", code=2)
    assert list(tmp_path.iterdir()) == []
