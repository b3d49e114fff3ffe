"""The file of predictions, and the program of docs/evaluation.md that looks for label errors in the predictions."""

import base64
import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainer.data.dataset import Dataset
from trainer.results import predictions
from trainer.results.predictions import Predictions


@pytest.fixture(scope="module")
def both(digits: Dataset) -> list[Predictions]:
    """Predictions of the next class for all images of two splits."""
    found = []
    for split in ("validation", "test"):
        labels = np.array([record.label for record in digits.records(split)], np.int32)
        probabilities = np.eye(10, dtype=np.float32)[(labels + 1) % 10]
        found.append(Predictions(split=split, labels=labels, probabilities=probabilities))
    return found


def test_each_prediction_is_a_line(digits: Dataset, both: list[Predictions]) -> None:
    lines = list(predictions.lines(digits, both))
    assert len(lines) == sum(len(each.labels) for each in both)
    (record,) = digits.records("test", [0])
    expected = {
        "file_name": record.file_name,
        "label": str(record.label),
        "predicted": str((record.label + 1) % 10),
        "probability": 1.0,
        "split": "test",
        "image": f"data:image/png;base64,{base64.b64encode(record.image_bytes).decode()}",
    }
    assert json.loads(lines[len(both[0].labels)]) == expected
    assert all(line.endswith("}\n") for line in lines)


def test_the_most_confident_mistakes_have_their_image(digits: Dataset, both: list[Predictions]) -> None:
    # All predictions are wrong, with less and less confidence, but one.
    falling = []
    for each in both:
        factors = np.linspace(1.0, 0.5, len(each.labels), dtype=np.float32)
        falling.append(dataclasses.replace(each, probabilities=each.probabilities * factors[:, None]))
    falling[1].probabilities[0] = np.eye(10, dtype=np.float32)[falling[1].labels[0]]
    lines = [json.loads(line) for line in predictions.lines(digits, falling)]
    shown = [each for each in lines if "image" in each]
    assert len(shown) == min(200, len(lines) - 1)
    assert all(each["label"] != each["predicted"] for each in shown)
    others = [each for each in lines if "image" not in each and each["label"] != each["predicted"]]
    assert max((each["probability"] for each in others), default=0) <= min(each["probability"] for each in shown)


@pytest.mark.slow
def test_the_programs_of_the_pages_find_label_errors_and_save_a_keras_file(
    digits: Dataset, trained_directory: Path, repository: Path, tmp_path: Path
) -> None:
    def run(page: str, first: str) -> str:
        text = (repository / "docs" / page).read_text()
        (code,) = (
            block for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S) if block.startswith(first)
        )
        code = code.replace("DATASET", digits.directory).replace("RUN", str(trained_directory))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    found = [line.partition(": ")[0] for line in run("evaluation.md", "from cleanlab").splitlines()]
    assert found
    assert set(found) <= {record.file_name for split in ("validation", "test") for record in digits.records(split)}
    run("models.md", "from trainer.checkpoints")
    assert (tmp_path / "model.keras").stat().st_size > 1000
