"""The report on the model: how good it is, how it got there, and where it is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.checkpoints.restored import TrainedModel
from trainer.data.dataset import Dataset
from trainer.evaluate import Evaluation
from trainer.files import event_log as events
from trainer.results import report
from trainer.results.report import charts

_MOST_WRONG = 24
_MAX_DRAWN_CLASSES = 60
"""Above it the confusion matrix would be unreadable; the pairs most confused are told instead."""


def render(
    evaluation: Evaluation, dataset: Dataset, probabilities: npt.NDArray[np.float32], *, trained: TrainedModel,
    checkpoint_directory: str,
) -> str:  # fmt: skip
    """HTML of the report.

    Args:
        evaluation: of the test split.
        dataset: where the test images are.
        probabilities: float32 [N, K], in the stored order of the test split.
        trained: the model that was evaluated.
        checkpoint_directory: has the run's events.
    """
    best = trained.checkpoint.best
    # Every worker tells of the same steps.
    history = [event for event in events.read(checkpoint_directory) if event["replica"] == events.PRIMARY]
    mistakes = _mistakes(evaluation, dataset, probabilities)
    blocks: list[report.Block] = [
        report.Figures(
            figures=[
                ("accuracy on the test split", f"{evaluation.accuracy:.2%}"),
                ("loss on the test split", f"{evaluation.loss:.4f}"),
                ("test images", f"{evaluation.num_examples:,}"),
                ("wrong", f"{round(evaluation.num_examples * (1 - evaluation.accuracy)):,}"),
                ("accuracy on validation", f"{best.accuracy:.2%}"),
                ("best step", f"{trained.checkpoint.step:,}"),
            ]
        ),
        *_curves(history),
        *_confusion(evaluation),
        *mistakes,
        report.Table(
            title="Classes",
            columns=["class", "precision", "recall", "test images"],
            rows=[[c.class_name, c.precision, c.recall, c.num_examples] for c in evaluation.class_scores],
        ),
        report.Table(
            title="Run",
            columns=["what", "value"],
            rows=[["run", trained.checkpoint.run_id], *([k, str(v)] for k, v in trained.checkpoint.identity.items())],
        ),
    ]
    subtitle = f"{trained.config.model}, chosen by validation, reported on images it never saw"
    return report.page(title="Model", subtitle=subtitle, blocks=blocks)


def _curves(history: list[dict[str, Any]]) -> list[report.Block]:
    """Loss and accuracy over the steps; steps that were trained twice (after a stop) appear once, as last trained."""
    training = _average({event["last_step"]: event for event in history if event["event"] == "steps"})
    validation = {event["step"]: event for event in history if event["event"] == "evaluate"}
    if not training and not validation:
        return []
    svgs = [
        charts.lines(
            name.capitalize(),
            {
                "train": [(step, event[name]) for step, event in sorted(training.items())],
                "validation": [(step, event[name]) for step, event in sorted(validation.items())],
            },
            x_label="step",
            y_label=unit,
        )
        for name, unit in (("loss", "cross-entropy (nats)"), ("accuracy", "share right"))
    ]
    note = "Training values are of images with random changes and dropout, so validation may look better."
    return [report.Chart(title="Training", svgs=svgs, note=note)]


def _average(windows: dict[int, dict[str, Any]], num_points: int = 100) -> dict[int, dict[str, Any]]:
    """At most about `num_points` windows, neighbours joined by their mean."""
    steps = sorted(windows)
    width = max(1, -(-len(steps) // num_points))
    joined = {}
    for start in range(0, len(steps), width):
        group = [windows[step] for step in steps[start : start + width]]
        weights = [event["last_step"] - event["first_step"] + 1 for event in group]
        joined[steps[min(start + width, len(steps)) - 1]] = {
            name: float(np.average([event[name] for event in group], weights=weights)) for name in ("loss", "accuracy")
        }
    return joined


def _confusion(evaluation: Evaluation) -> list[report.Block]:
    matrix = np.asarray(evaluation.confusion_matrix, np.int64)
    names = evaluation.class_names
    off_diagonal = matrix - np.diag(np.diag(matrix))
    pairs = sorted(zip(*np.nonzero(off_diagonal), strict=True), key=lambda pair: -off_diagonal[pair])[:15]
    blocks: list[report.Block] = []
    if len(names) <= _MAX_DRAWN_CLASSES:
        note = "Rows are true classes, columns predictions; blue is right, red is wrong."
        blocks.append(report.Chart(title="Confusion matrix", note=note, svgs=[charts.confusion("", matrix, names)]))
    if pairs:
        rows = [[names[true], names[predicted], int(off_diagonal[true, predicted])] for true, predicted in pairs]
        blocks.append(report.Table(title="Most confused", columns=["true", "predicted", "images"], rows=rows))
    return blocks


def _mistakes(evaluation: Evaluation, dataset: Dataset, probabilities: npt.NDArray[np.float32]) -> list[report.Block]:
    labels = np.asarray([record.label for record in dataset.records("test")])
    predicted = probabilities.argmax(axis=1)
    wrong = np.flatnonzero(predicted != labels)
    if not len(wrong):
        return [report.Text(title="Most wrong", text="No test image was classified wrongly.")]
    # Most wrong: the least probability for the truth.
    indices = sorted(wrong.tolist(), key=lambda index: float(probabilities[index, labels[index]]))[:_MOST_WRONG]
    pictures = [
        report.Picture(
            image_bytes=record.image_bytes,
            caption=f"{evaluation.class_names[record.label]} taken for {evaluation.class_names[predicted[index]]}",
            detail=f"{probabilities[index, predicted[index]]:.0%} sure, {record.file_name}",
        )
        for index, record in zip(indices, dataset.records("test", indices), strict=True)
    ]
    note = f"{len(wrong)} of {len(labels)} test images are wrong; these have the least probability for the true class."
    return [report.Pictures(title="Most wrong", note=note, pictures=pictures)]
