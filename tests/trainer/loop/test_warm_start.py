"""A training that starts from the weights of another run: the same after a kill, and never silently from scratch."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from tests.support.job import Job, kill
from tests.support.learners import make_learner
from tests.support.modules import run_module
from trainer.checkpoints import starting_weights, variables
from trainer.loop.warm_start import WarmStart
from trainer.prepare import prepare
from vertex_gpu_training.userinput.errors import UserError

DIGITS = tuple("0123456789")
FLAGS = ["--exact", "--epochs=4", "--global-batch-size=32", "--checkpoint-every-steps=2", "--seed=3"]


@pytest.fixture
def other_digits(tmp_path: Path) -> Path:
    """Digits of which one class has another name than those of the finished run."""
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


@pytest.mark.parametrize("folder", ["", "empty", "other"])
def test_weights_that_are_not_there_are_never_replaced_by_random_ones(
    tmp_path: Path, trained_directory: Path, folder: str
) -> None:
    wanted = "sha256:" + "0" * 64
    where = {"": "", "empty": str(tmp_path), "other": str(trained_directory)}[folder]
    with pytest.raises(UserError, match="name the weights again") as caught:
        WarmStart(class_names=DIGITS, image_size=16, folder=where).apply(
            make_learner(weights=wanted), {"weights": wanted}
        )
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_killed_run_resumes_after_its_source_was_deleted_and_ends_with_the_same_weights(
    trained_directory: Path, other_digits: Path, tmp_path: Path
) -> None:
    def job(name: str, source: Path) -> Job:
        words = [f"--dataset={other_digits}", f"--checkpoint-directory={tmp_path / name}", *FLAGS]
        return Job(tmp_path / name, [*words, f"--weights=run:{source}"])

    def result(job: Job) -> dict[str, Any]:
        return {name: value for name, value in job.result().items() if "per_second" not in name}

    source = tmp_path / "source"
    shutil.copytree(trained_directory, source)
    killed, uninterrupted = job("killed", source), job("uninterrupted", trained_directory)
    uninterrupted.run()
    killed.run_until_step(8, kill(0))
    shutil.rmtree(source)
    killed.run(max_attempts=1)
    assert killed.notices().count("9 of 10 classes keep their rows; new: nine; not taken: 9") == 1
    first, second = result(uninterrupted), result(killed)
    assert (second["num_restarts"], first["num_restarts"]) == (1, 0)
    for name in ("run_id", "weights_sha256", "batch_digests", "validation_loss"):
        assert second[name] == first[name]
    assert second["started_from"]["taken"] == first["started_from"]["taken"]
    assert second["identity"]["weights"] == starting_weights.of_run(str(trained_directory)).digest
    # A finished run needs its source no more; another one, or a start without it, is refused.
    again = run_module("trainer.task", *killed.arguments)
    assert (again.returncode, "nothing to do" in again.stdout) == (0, True)
    words = [f"--dataset={other_digits}", f"--checkpoint-directory={tmp_path / 'new'}", f"--weights=run:{source}"]
    refused = run_module("trainer.task", *words)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "no finished run in" in refused.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_a_copy_that_vanished_before_the_first_step_ends_the_start(digits_directory: Path, tmp_path: Path) -> None:
    folder, weights = tmp_path / "run", "sha256:" + "0" * 64
    words = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder}", f"--weights={weights}"]
    refused = run_module("trainer.task", *words, f"--starting-weights={tmp_path / 'gone'}")
    assert refused.returncode == 2, refused.stderr
    assert "no step has been trained" in refused.stderr
    assert not list(folder.glob("step-*"))
    events = [
        json.loads(line)["event"] for line in (folder / "events" / "workerpool0-0.jsonl").read_text().splitlines()
    ]
    assert "steps" not in events
    # Another run may begin in the same folder.
    assert not (folder / "owner.json").exists()
