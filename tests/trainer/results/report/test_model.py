"""The report on a model: its curves, confusion matrix and mistakes."""

import base64
import io
import re
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from trainer.data.dataset import Dataset
from trainer.data.pages import page
from trainer.results.evaluation import score
from trainer.results.predictions import Predictions
from trainer.results.report import model


def window(first: int, last: int, loss: float) -> dict[str, Any]:
    """The event of some training steps."""
    return {"event": "steps", "first_step": first, "last_step": last, "loss": loss, "accuracy": 0.5}


def test_windows_are_averaged_by_their_number_of_steps() -> None:
    windows = {event["last_step"]: event for event in (window(1, 3, 1.0), window(4, 4, 5.0), window(5, 6, 7.0))}
    found = model._average(windows, num_points=2)
    assert {step: values["loss"] for step, values in found.items()} == {4: 2.0, 6: 7.0}


def test_steps_that_were_repeated_appear_as_last_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(
        "trainer.data.pages.charts.lines", lambda title, series, **labels: drawn.update({title: series}) or ""
    )
    model._curves([window(1, 2, 9.0), window(1, 2, 1.0), {"event": "evaluate", "step": 2, "loss": 3.0, "accuracy": 1}])
    assert drawn["Loss"] == {"train": [(2, 1.0)], "validation": [(2, 3.0)]}


def test_the_chosen_metric_has_a_curve_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(
        "trainer.data.pages.charts.lines", lambda title, series, **labels: drawn.update({title: series}) or ""
    )
    done = {"event": "evaluate", "loss": 3.0, "accuracy": 1, "metric": "macro-f1"}
    model._curves([done | {"step": 4, "score": 0.5}, done | {"step": 2, "score": 0.25}], "macro-f1")
    assert drawn["Macro-f1"] == {"validation": [(2, 0.25), (4, 0.5)]}


@pytest.mark.parametrize("marks", [[], [12]])
def test_two_phases_are_one_chart_with_a_mark_at_the_boundary(marks: list[int]) -> None:
    notices = [{"event": "notice", "fine_tuning_step": step} for step in marks]
    validation = {"event": "evaluate", "step": 20, "loss": 3.0, "accuracy": 1}
    [block] = model._curves([window(1, 12, 9.0), *notices, window(13, 20, 1.0), validation])
    assert isinstance(block, page.Chart)
    assert len(block.svgs) == 2
    for svg in block.svgs:
        assert ("base also trained" in svg) is bool(marks)
        assert ("stroke-dasharray" in svg) is bool(marks)


def test_both_scores_stand_beside_the_baseline() -> None:
    probabilities = np.eye(2, dtype=np.float32)[[0, 0, 0, 0]]
    labels = np.array([0, 0, 0, 1], np.int32)
    found = score(labels, probabilities, ["<a>", "b"], train_counts=[9, 1], metric="balanced-accuracy")
    assert model._scores(found) == [
        ("test accuracy (75.00% by always answering '<a>')", "75.00%"),
        ("test balanced-accuracy (50.00% by always answering '<a>')", "50.00%"),
    ]
    both = score(labels, np.eye(2, dtype=np.float32)[labels], ["<a>", "b"], train_counts=[9, 1])
    assert model._scores(both) == [("test accuracy (75.00% by always answering '<a>')", "100.00%")]


def test_a_run_without_events_has_no_curves() -> None:
    assert model._curves([]) == []


def test_the_matrix_of_a_hundred_classes_is_a_heat_map_without_numbers() -> None:
    names = [f"class {number}" for number in range(100)]
    labels = np.arange(2_000, dtype=np.int32) % 100
    predicted = np.where(labels == 7, 8, labels)
    found = score(labels, np.eye(100, dtype=np.float32)[predicted], names, train_counts=[1] * 100)
    chart, table = model._confusion(found)
    assert isinstance(chart, page.Chart)
    assert isinstance(table, page.Table)
    assert table.rows == [["class 7", "class 8", 20]]
    (svg,) = chart.svgs
    (data,) = re.findall(r'"data:image/png;base64,([^"]*)"', svg)
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        cells = np.asarray(image)
    # One pixel per cell, which the browser enlarges without smoothing it.
    assert cells.shape == (100, 100, 4)
    assert "pixelated" in svg
    correct, wrong = [0x1A, 0x73, 0xE8, 255], [0xC5, 0x22, 0x1F, 255]
    assert (cells[3, 3].tolist(), cells[7, 8].tolist()) == (correct, wrong)
    assert (np.argwhere(cells[..., 3]) == np.stack([np.arange(100), np.arange(100) + (np.arange(100) == 7)], 1)).all()
    texts = re.findall(r">([^<>]+)</text>", svg)
    assert "20" not in texts
    assert [text for text in texts if text.startswith("class")] == 2 * names[::4]
    assert len(svg) < 50_000


def test_the_matrix_of_many_classes_is_not_drawn_but_its_pairs_are_listed() -> None:
    names = [f"class {number}" for number in range(model._MAX_DRAWN_CLASSES + 1)]
    probabilities = np.eye(len(names), dtype=np.float32)[[1, 1, 2]]
    (table,) = model._confusion(
        score(np.array([0, 0, 2], np.int32), probabilities, names, train_counts=[1] * len(names))
    )
    assert isinstance(table, page.Table)
    assert table.rows == [["class 0", "class 1", 2]]


def test_the_worst_errors_come_first(digits: Dataset) -> None:
    labels = np.array([record.label for record in digits.records("test")], np.int32)
    probabilities = np.eye(10, dtype=np.float32)[labels]
    predictions = Predictions(split="test", labels=labels, probabilities=probabilities)
    assert isinstance(model._mistakes(digits, predictions), page.Text)
    for row, certainty in ((3, 0.6), (5, 0.9)):
        probabilities[row] = 0
        probabilities[row, labels[row]], probabilities[row, (labels[row] + 1) % 10] = 1 - certainty, certainty
    gallery = model._mistakes(digits, predictions)
    assert isinstance(gallery, page.Gallery)
    assert [image.detail.split(" confident")[0] for image in gallery.images] == ["90%", "60%"]
    assert gallery.note.startswith(f"2 of {len(labels)} test images are misclassified")


def test_at_most_three_errors_of_a_class_are_shown_the_most_confident_ones(digits: Dataset) -> None:
    labels = np.array([record.label for record in digits.records("test")], np.int32)
    confidence = np.linspace(0.6, 0.9, len(labels), dtype=np.float32)
    probabilities = np.zeros((len(labels), 10), np.float32)
    rows = np.arange(len(labels))
    probabilities[rows, labels], probabilities[rows, (labels + 1) % 10] = 1 - confidence, confidence
    gallery = model._mistakes(digits, Predictions(split="test", labels=labels, probabilities=probabilities))
    assert isinstance(gallery, page.Gallery)
    expected = sorted(index for digit in range(10) for index in np.flatnonzero(labels == digit)[-3:])[::-1]
    names = [record.file_name for record in digits.records("test", [int(index) for index in expected])]
    assert [image.detail.split(", ")[1] for image in gallery.images] == names
    counts = Counter(image.caption for image in gallery.images)
    tested = Counter(labels.tolist())
    # Some digits have only two test images.
    assert counts == {f"{digit} predicted as {(digit + 1) % 10}": min(3, number) for digit, number in tested.items()}


class _ManyClasses:
    """A dataset of a hundred classes, of which only the records are asked for."""

    class_names = tuple(str(number) for number in range(100))

    def records(self, split: str, indices: list[int]) -> list[SimpleNamespace]:
        return [SimpleNamespace(image_bytes=b"", label=index % 100, file_name=str(index)) for index in indices]


def test_errors_in_a_hundred_classes_do_not_fill_the_page() -> None:
    labels = np.arange(1_000, dtype=np.int32) % 100
    probabilities = np.eye(100, dtype=np.float32)[(labels + 1) % 100]
    predictions = Predictions(split="test", labels=labels, probabilities=probabilities)
    gallery = model._mistakes(cast("Dataset", _ManyClasses()), predictions)
    assert isinstance(gallery, page.Gallery)
    assert len(gallery.images) == 60
