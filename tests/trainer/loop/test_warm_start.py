"""A training that starts from the weights of another run: the same after a kill, and never silently from scratch."""

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from exact_resume.events import log as event_log
from localvertex._base.userinput.errors import UserError
from tests.support.forks import fork_module
from tests.support.learners import make_learner
from trainer.checkpoints import starting_weights, variables
from trainer.loop.warm_start import WarmStart
from trainer.prepare import prepare

DIGITS = tuple("0123456789")
MISSING = "sha256:" + "0" * 64
FLAGS = ["--exact", "--epochs=4", "--global-batch-size=32", "--checkpoint-every-steps=2", "--seed=3"]


@pytest.fixture
def other_digits(tmp_path: Path) -> Path:
    """Digits of which one class has another name than those of the finished run."""
    # Imports a large package.
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    for number, (image, label) in enumerate(zip(images[:300], labels[:300], strict=True)):
        folder = tmp_path / "images" / ("nine" if label == 9 else str(label))
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.reshape(8, 8) * 255 / 16).astype(np.uint8)).save(folder / f"{number:04}.png")
    prepare(
        source=str(tmp_path / "images"),
        output_directory=str(tmp_path / "dataset"),
        report_path=str(tmp_path / "report.html"),
        image_size=16,
        max_examples=0,
        max_bad_fraction=0.0,
    )
    return tmp_path / "dataset"


@pytest.mark.slow
def test_the_network_has_the_weights_of_the_run_that_it_starts_from(trained_directory: Path) -> None:
    weights = starting_weights.of_run(str(trained_directory))
    learner = make_learner(weights=weights.digest)
    start = WarmStart(class_names=(*DIGITS[:9], "nine"), image_size=16, folder=str(trained_directory))
    taken = start.apply(learner, {"weights": weights.digest, "model": "convnet"})
    assert taken.endswith("(convnet): 9 of 10 classes keep their rows; new: nine; not taken: 9")
    for variable, array, value in zip(
        learner.model.variables, weights.arrays, variables.values(learner.model.variables), strict=True
    ):
        if "logits" in variable.path:
            assert np.array_equal(value[..., :9], array[..., :9])
            assert not np.array_equal(value[..., 9], array[..., 9])
        elif "seed" not in variable.path:
            assert np.array_equal(value, array)
    assert start.apply(make_learner(), {"weights": "default"}) == ""


@pytest.mark.parametrize(
    ("folder", "wanted"),
    [("", MISSING), ("empty", MISSING), ("other", MISSING), ("other", "run:not-resolved")],
)
def test_weights_that_are_not_there_are_never_replaced_by_random_ones(
    tmp_path: Path, trained_directory: Path, folder: str, wanted: str
) -> None:
    where = {"": "", "empty": str(tmp_path), "other": str(trained_directory)}[folder]
    expected = "name the weights again" if where else "--starting-weights is missing; give the folder"
    with pytest.raises(UserError, match=expected) as caught:
        WarmStart(class_names=DIGITS, image_size=16, folder=where).apply(
            make_learner(weights=wanted), {"weights": wanted}
        )
    assert "\n" not in str(caught.value)


@pytest.fixture
def source(trained_directory: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, which a test may delete."""
    return Path(shutil.copytree(trained_directory, tmp_path / "source"))


def kill_at_save(step: int, *words: str) -> int:
    """Train until the save of a step, which kills the process; return the exit code."""
    return fork_module("tests.support.killed_task", str(step), "--", *words).returncode


@pytest.mark.slow
def test_a_killed_run_resumes_after_its_source_was_deleted_and_ends_with_the_same_weights(
    trained_directory: Path, other_digits: Path, source: Path, tmp_path: Path
) -> None:
    def words(name: str, source: Path) -> list[str]:
        return [f"--dataset={other_digits}", f"--checkpoint-directory={tmp_path / name}", f"--weights=run:{source}"]

    assert kill_at_save(8, *words("killed", source), *FLAGS) == -signal.SIGKILL
    shutil.rmtree(source)
    for given in (words("killed", source), words("uninterrupted", trained_directory)):
        done = fork_module("trainer.task", *given, *FLAGS)
        assert done.returncode == 0, done.stderr
    messages = [event["message"] for event in event_log.read(str(tmp_path / "killed")) if event["event"] == "notice"]
    assert sum("9 of 10 classes keep their rows; new: nine; not taken: 9" in message for message in messages) == 1
    killed, uninterrupted = (
        json.loads((tmp_path / name / "result.json").read_text()) for name in ("killed", "uninterrupted")
    )
    assert (killed["num_restarts"], uninterrupted["num_restarts"]) == (1, 0)
    for name in ("run_id", "weights_sha256", "batch_digests", "validation_loss"):
        assert killed[name] == uninterrupted[name]
    assert killed["started_from"]["taken"] == uninterrupted["started_from"]["taken"]
    assert killed["identity"]["weights"] == starting_weights.of_run(str(trained_directory)).digest
    # A finished run needs its source no more; a new one does.
    again = fork_module("trainer.task", *words("killed", source), *FLAGS)
    assert (again.returncode, "nothing to do" in again.stdout) == (0, True)
    refused = fork_module("trainer.task", *words("new", source), *FLAGS)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "no finished run in" in refused.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_a_run_without_a_checkpoint_whose_source_vanished_does_not_start_from_scratch(
    digits_directory: Path, source: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    words = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder}", f"--weights=run:{source}", *FLAGS]
    assert kill_at_save(1, *words) == -signal.SIGKILL
    shutil.rmtree(source)
    refused = fork_module("trainer.task", *words)
    assert (refused.returncode, "no step has been trained" in refused.stderr) == (2, True), refused.stderr
    assert not list(folder.glob("step-*"))
    assert sum(event["event"] == "start" for event in event_log.read(str(folder))) == 2
    # Another run may begin in the same folder.
    assert not (folder / "owner.json").exists()
