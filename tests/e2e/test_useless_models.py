"""A model that has learnt nothing is never promoted, and a few photographs still end with a usable model."""

import json
import pathlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from localvertex.store.model_versions import ModelVersions
from tests.e2e.conftest import STEPS, Run, Runner
from trainer.predict import main as predict

pytestmark = pytest.mark.slow
REFUSED = STEPS - {"export", "model-upload", "record"}


def noise(folder: pathlib.Path, **counts: int) -> pathlib.Path:
    """Write images that have nothing to do with their classes."""
    random = np.random.default_rng(0)
    for name, count in counts.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            Image.fromarray(random.integers(0, 256, (8, 8, 3), np.uint8)).save(folder / name / f"{number:04}.png")
    return folder


def log(work_dir: pathlib.Path, run: Run, task: str) -> str:
    return (work_dir / run.record["run_id"] / run.task(task)["log"]).read_text()


def aliases(work_dir: pathlib.Path, name: str = "image-training") -> dict[str, str]:
    return ModelVersions(work_dir / "models" / name).aliases


@pytest.mark.parametrize(
    ("counts", "parameters", "is_overruled"),
    [
        # Classes with weights by default: the score is below the minimum already, as in tests/e2e/test_readme.py.
        pytest.param({"often": 1080, "rarely": 120}, {"epochs": 2}, False, marks=pytest.mark.soak),
        ({"often": 1080, "rarely": 120}, {"epochs": 2, "recipe": '{"class_weights": "none"}'}, False),
        # Of the next run and of force_promotion there are tests of the steps, too, in tests/components.
        # With the flags of `make demo SOURCE=...`, but smaller images.
        pytest.param(
            {"circle": 600, "square": 300, "star": 120},
            {"minimum_score": 0, "global_batch_size": 16, "max_steps": 3},
            True,
            marks=pytest.mark.soak,
        ),
    ],
)
def test_noise_is_refused_with_the_default_parameters(
    run: Runner, tmp_path: pathlib.Path, counts: dict[str, int], parameters: dict[str, Any], *, is_overruled: bool
) -> None:
    source = noise(tmp_path / "images", **counts)
    work_dir = tmp_path / "runs"
    done = run(work_dir, "first", source=source, deploy_endpoint="live", **parameters)
    assert done.exit_code == 0, done.output
    frequent = max(counts, key=counts.__getitem__)
    if parameters == {"epochs": 2}:
        assert done.steps == REFUSED - {"compare"}
    else:
        assert done.steps == REFUSED
        reason = log(work_dir, done, "compare")
        assert "not promoted: not better than a constant answer: accuracy 0." in reason
        assert f"by always answering {frequent!r}" in reason
    assert not (work_dir / "models").exists() or not list((work_dir / "models").glob("*/1"))
    metrics = done.artifact("evaluate", "metrics")["metadata"]
    assert (metrics["baseline_class"], metrics["baseline_accuracy"] > 0.5) == (frequent, True)
    assert "baseline_accuracy" in done.output
    if not is_overruled:
        return
    again = run(work_dir, "again", source=source, deploy_endpoint="live", **parameters)
    assert again.steps == {"prepare", "plan", "summary"}
    assert "not registered: not better than a constant answer" in log(work_dir, again, "plan")
    # Only a user can overrule the refusal, and the label of the version shows it.
    forced = run(work_dir, "forced", source=source, force_promotion="true", **(parameters | {"minimum_score": 0}))
    assert forced.exit_code == 0, forced.output
    assert aliases(work_dir) == {"champion": "1", "default": "1"}
    (model,) = work_dir.glob("models/*/1/model.json")
    content = json.loads(model.read_text())
    assert (content["labels"] | content.get("version_labels", {}))["promotion"] == "forced"
    assert "by force_promotion; not better than a constant answer" in log(work_dir, forced, "compare")


@pytest.mark.soak
def test_forty_photographs_end_with_a_usable_model_that_is_no_champion(
    run: Runner, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(1)
    for name, colour in (("blue", (20, 40, 200)), ("red", (200, 40, 20))):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(20):
            pixels = np.clip(random.normal(colour, 20, (48, 64, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / name / f"{number}.jpg")
    work_dir = tmp_path / "runs"
    small = {"minimum_score": 0, "global_batch_size": 16, "epochs": 20}
    done = run(work_dir, "first", source=tmp_path / "images", deploy_endpoint="live", **small)
    assert done.exit_code == 0, done.output
    assert done.steps == STEPS
    reason = log(work_dir, done, "compare")
    assert "not deployed to live: the model is not promoted" in reason
    assert "too few test images to tell whether the model has learnt anything" in reason
    assert "would be enough" in reason
    # The service makes the first version its default.
    assert aliases(work_dir) == {"default": "1"}
    folder = done.artifact("export", "model")["uri"]
    assert predict([folder, str(tmp_path / "images" / "red" / "0.jpg")]) == 0
    assert capsys.readouterr().out.split()
    again = run(work_dir, "again", source=tmp_path / "images", deploy_endpoint="live", **small)
    assert again.steps == {"prepare", "plan", "summary"}
    assert "not deployed: too few test images" in log(work_dir, again, "plan")
    # Another configuration is registered as the second version, without an alias, and competes with nothing.
    other = run(work_dir, "other", source=tmp_path / "images", seed=1, **small)
    assert other.exit_code == 0, other.output
    assert aliases(work_dir) == {"default": "1"}
    # A user promotes it after all.
    forced = run(work_dir, "forced", source=tmp_path / "images", force_promotion="true", seed=1, **small)
    assert forced.exit_code == 0, forced.output
    assert "export" not in forced.steps
    assert aliases(work_dir) == {"champion": "2", "default": "2"}


@pytest.mark.soak
def test_copies_of_two_test_images_are_two_images(run: Runner, tmp_path: pathlib.Path) -> None:
    random = np.random.default_rng(0)
    for split, number in (("train", 40), ("validation", 10), ("test", 1)):
        for name, most in (("dark", 60), ("light", 255)):
            folder = tmp_path / "images" / split / name
            folder.mkdir(parents=True)
            for each in range(number):
                pixels = random.integers(most - 60, most, (8, 8, 3), np.uint8)
                for copy in range(40 if split == "test" else 1):
                    Image.fromarray(pixels).save(folder / f"{each}-{copy}.png")
    work_dir = tmp_path / "runs"
    done = run(work_dir, "first", source=tmp_path / "images", epochs=10, minimum_score=0, global_batch_size=16)
    assert done.exit_code == 0, done.output
    assert "too few test images" in log(work_dir, done, "compare")
    assert "on 2 test images, " in (reason := log(work_dir, done, "compare"))
    assert "78 copies left out" in reason
    assert aliases(work_dir) == {"default": "1"}
