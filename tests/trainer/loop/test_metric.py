"""The metric that a run is given chooses its best checkpoint; with accuracy, a run leaves what it always left."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn import metrics as sklearn_metrics

from tests.support.forks import fork_module
from tests.support.modules import run_module
from trainer.checkpoints import best as best_checkpoint, restored
from trainer.data import dataset, staging
from trainer.results import predictions
from vertex_testing.shared import make_once

FLAGS = ("--exact", "--epochs=12", "--global-batch-size=32", "--learning-rate=0.003", "--augment=none", "--seed=3")
EVALUATE = ["time", "event", "split", "step", "epoch", "loss", "accuracy", "is_best", "seconds"]
"""Fields of the event `evaluate` in earlier versions, in their order."""
RESULT = {"validation_accuracy", "validation_loss", "best_step", "best_checkpoint", "run_id", "identity", "final_step"}


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with five images of noise to one that is slightly brighter."""

    def make(folder: Path) -> None:
        random = np.random.default_rng(5)
        for number in range(600):
            name = "rare" if number % 6 == 0 else "frequent"
            pixels = random.integers(0, 200, (16, 16, 3)) + (3 if name == "rare" else 0)
            (folder / "images" / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / "images" / name / f"{number}.png")
        done = run_module("trainer.prepare", f"{folder}/images", f"{folder}/dataset", "--image-size=16")
        assert done.returncode == 0, done.stderr

    return make_once(tmp_path_factory, "skewed", make) / "dataset"


def trained(data: Path, folder: Path, *flags: str) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """Train; return the result, the validations and what was printed."""
    done = fork_module("trainer.task", f"--dataset={data}", f"--checkpoint-directory={folder}", *FLAGS, *flags)
    assert done.returncode == 0, done.stderr
    lines = (folder / "events" / "workerpool0-0.jsonl").read_text().splitlines()
    events = [event for line in lines if (event := json.loads(line))["event"] == "evaluate"]
    return json.loads((folder / "result.json").read_text()), events, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("num_devices", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_the_metric_chooses_the_best_checkpoint_and_changes_no_weight(
    skewed: Path, tmp_path: Path, num_devices: int
) -> None:
    devices = f"--logical-cpu-devices={num_devices}"
    usual, scores, printed = trained(skewed, tmp_path / "usual", devices)
    for name in ("balanced-accuracy", "macro-f1"):
        other, own_scores, own_printed = trained(skewed, tmp_path / name, devices, f"--metric={name}")
        assert other["weights_sha256"] == usual["weights_sha256"]
        assert other["batch_digests"] == usual["batch_digests"]
        assert [each["accuracy"] for each in own_scores] == [each["accuracy"] for each in scores]
        assert [each["loss"] for each in own_scores] == [each["loss"] for each in scores]
        chosen = max(own_scores, key=lambda each: (each["score"], -each["loss"]))
        assert (other["best_step"], other["metric"], other["score"]) == (chosen["step"], name, chosen["score"])
        assert [each["step"] for each in own_scores if each["is_best"]][-1] == chosen["step"]
        assert score_of(skewed, tmp_path / name, name) == pytest.approx(chosen["score"], abs=1e-12)
        assert f"{name} {chosen['score']:.4f}  best so far" in own_printed
        assert f"with validation {name} {chosen['score']:.4f} and accuracy {chosen['accuracy']:.4f} (" in own_printed
        assert other["run_id"] != usual["run_id"]
        if num_devices == 1:
            assert chosen["step"] != usual["best_step"], "this test shows nothing with these data; choose another seed"
    assert max(scores, key=lambda each: (each["accuracy"], -each["loss"]))["step"] == usual["best_step"]
    assert {*map(tuple, scores)} == {tuple(EVALUATE)}
    assert {*usual} & {"metric", "score"} == set()
    assert {*usual} >= RESULT
    data = dataset.load(str(skewed))
    name, accuracy = data.constant_answer("validation")
    assert name == "frequent"
    assert f"({accuracy:.4f} by always answering 'frequent')" in printed


def score_of(data: Path, folder: Path, metric: str) -> float:
    """Return the metric of the best checkpoint, by scikit-learn."""
    loaded = dataset.load(str(data))
    model = restored.model_of(best_checkpoint.find(str(folder), loaded), loaded).model
    found = predictions.predict(model, staging.stage(loaded, "validation"), "validation")
    answers = found.probabilities.argmax(axis=1)
    if metric == "macro-f1":
        return float(sklearn_metrics.f1_score(found.labels, answers, average="macro"))
    return float(sklearn_metrics.balanced_accuracy_score(found.labels, answers))
