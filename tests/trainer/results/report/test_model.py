"""The report on a model: its curves, confusion matrix and mistakes."""

from typing import Any

import numpy as np
import pytest

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


def test_both_scores_stand_beside_the_baseline_and_a_class_that_is_never_predicted_is_listed() -> None:
    probabilities = np.eye(2, dtype=np.float32)[[0, 0, 0, 0]]
    labels = np.array([0, 0, 0, 1], np.int32)
    found = score(labels, probabilities, ["<a>", "b"], train_counts=[9, 1], metric="balanced-accuracy")
    assert model._scores(found) == [
        ("test accuracy (75.00% by always answering '<a>')", "75.00%"),
        ("test balanced-accuracy (50.00% by always answering '<a>')", "50.00%"),
    ]
    (table,) = model._never_predicted(found)
    assert isinstance(table, page.Table)
    assert (table.rows, table.states) == ([["b", 1]], ["bad"])
    both = score(labels, np.eye(2, dtype=np.float32)[labels], ["<a>", "b"], train_counts=[9, 1])
    assert model._scores(both) == [("test accuracy (75.00% by always answering '<a>')", "100.00%")]
    assert model._never_predicted(both) == []


def test_a_run_without_events_has_no_curves() -> None:
    assert model._curves([]) == []


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
    right = score(labels, probabilities, list(digits.class_names), train_counts=digits.counts("train"))
    predictions = Predictions(split="test", labels=labels, probabilities=probabilities)
    assert isinstance(model._mistakes(right, digits, predictions), page.Text)
    for row, certainty in ((3, 0.6), (5, 0.9)):
        probabilities[row] = 0
        probabilities[row, labels[row]], probabilities[row, (labels[row] + 1) % 10] = 1 - certainty, certainty
    gallery = model._mistakes(right, digits, predictions)
    assert isinstance(gallery, page.Gallery)
    assert [image.detail.split(" confident")[0] for image in gallery.images] == ["90%", "60%"]
    assert gallery.note.startswith(f"2 of {len(labels)} test images are misclassified")
