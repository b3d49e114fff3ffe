"""The report on a model: how good it is, how training went, and where it is wrong."""

from typing import Any

import numpy as np

from exact_resume.events import log as event_log
from localvertex._base.userinput.spelling import quote
from trainer.checkpoints import best, exactness, starting_weights
from trainer.checkpoints.restored import TrainedModel
from trainer.data.dataset import Dataset
from trainer.data.pages import charts, page
from trainer.models.metrics import ACCURACY
from trainer.results.evaluation import Evaluation
from trainer.results.predictions import Predictions, ranked_mistakes

_NUM_MISTAKES, _MISTAKES_PER_CLASS = 60, 3
_MAX_DRAWN_CLASSES = 250
"""A confusion matrix of more classes is unreadable; only the most confused pairs are then listed."""


def render(
    evaluation: Evaluation,
    dataset: Dataset,
    test: Predictions,
    *,
    trained: TrainedModel,
    checkpoint_directory: str,
) -> str:
    """Return the HTML of the report.

    Args:
        evaluation: Evaluation on the test split.
        dataset: The dataset; the shards of its test split must be on this machine.
        test: Calibrated predictions on the test split.
        trained: The model that was evaluated.
        checkpoint_directory: The folder that contains the run's event log.
    """
    # Every worker logs the same steps.
    events, _ = event_log.read_complete(checkpoint_directory)
    history = [event for event in events if event["replica"] == event_log.PRIMARY]
    never = set(evaluation.never_predicted)
    checkpoint, start = trained.checkpoint, starting_weights.read_start(checkpoint_directory)
    devices = checkpoint.extra.get("devices", ())
    lost = best.lost_best_of(checkpoint_directory)
    blocks: list[page.Block] = [
        page.KeyFigures(
            figures=[
                *_scores(evaluation),
                ("test loss", f"{evaluation.loss:.4f}"),
                ("test images", f"{evaluation.num_examples:,}"),
                *_validation(trained, dataset),
                *(
                    (name.replace("_", " "), f"{evaluation.metrics[name]:.4f}")
                    for name in ("temperature", "calibration_error", "uncalibrated_error")
                ),
                ("best step", f"{checkpoint.step:,}"),
            ]
        ),
        *([page.Text(title="The best checkpoint was lost", text=lost)] if lost else []),
        *_curves(history, trained.config.metric),
        *_confusion(evaluation),
        _mistakes(dataset, test),
        page.Table(
            title="Classes",
            note="A mark means that a class is never predicted.",
            columns=["class", "precision", "recall", "test images"],
            rows=[[c.class_name, c.precision, c.recall, c.num_examples] for c in evaluation.class_scores],
            states=["bad" if c.class_name in never else "" for c in evaluation.class_scores],
        ),
        page.Table(
            title="Run",
            columns=["field", "value"],
            rows=[
                ["run", checkpoint.run_id],
                *([["started from", start["taken"]]] if start else []),
                *([["devices", exactness.describe_devices(devices)]] if devices else []),
                *([name, str(value)] for name, value in checkpoint.identity.items()),
            ],
        ),
    ]
    subtitle = f"{trained.config.model}, chosen on the validation split and evaluated on unseen images"
    return page.render(title="Model", subtitle=subtitle, blocks=blocks)


def _scores(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the test accuracy, and the chosen metric if it is not accuracy, each with its baseline."""
    always = f"by always answering {quote(evaluation.baseline_class)}"
    found = {
        ACCURACY: (evaluation.accuracy, evaluation.baseline_accuracy),
        evaluation.metric: (evaluation.score, evaluation.baseline_score),
    }
    return [(f"test {metric} ({baseline:.2%} {always})", f"{score:.2%}") for metric, (score, baseline) in found.items()]


def _validation(trained: TrainedModel, dataset: Dataset) -> list[tuple[str, str]]:
    best = trained.checkpoint.best
    name, accuracy = dataset.constant_answer("validation")
    caption = f"validation accuracy ({accuracy:.2%} by always answering {quote(name)})"
    other = [(f"validation {trained.config.metric}", f"{best.score:.2%}")] if best.score is not None else []
    return [(caption, f"{best.accuracy:.2%}"), *other]


def _curves(history: list[dict[str, Any]], metric: str = ACCURACY) -> list[page.Block]:
    """Draw loss and accuracy over the steps; steps that were repeated after a stop appear once, as last trained."""
    steps = [event for event in history if event["event"] == "steps" and {"loss", "accuracy"} <= event.keys()]
    training = _average({event["last_step"]: event for event in steps})
    validation = {event["step"]: event for event in history if event["event"] == "evaluate"}
    if not training and not validation:
        return []
    mark = max(event.get("fine_tuning_step", 0) for event in history)
    svgs = [
        charts.lines(
            name.capitalize(),
            {
                "train": [(step, event[name]) for step, event in sorted(training.items())],
                "validation": [(step, event[name]) for step, event in sorted(validation.items())],
            },
            x_label="step",
            y_label=unit,
            mark=mark,
        )
        for name, unit in (("loss", "cross-entropy (nats)"), ("accuracy", "fraction correct"))
    ]
    if points := [(step, event["score"]) for step, event in sorted(validation.items()) if "score" in event]:
        svgs.append(charts.lines(metric.capitalize(), {"validation": points}, x_label="step", y_label=metric))
    note = "Training values include augmentation and dropout, so validation may look better."
    return [page.Chart(title="Training", svgs=svgs, note=note)]


def _average(windows: dict[int, dict[str, Any]], num_points: int = 100) -> dict[int, dict[str, Any]]:
    """Reduce the windows to at most about `num_points` by averaging neighbours."""
    joined = {}
    for steps in np.array_split(sorted(windows), min(num_points, len(windows))) if windows else ():
        group = [windows[step] for step in steps]
        weights = [event["last_step"] - event["first_step"] + 1 for event in group]
        joined[steps[-1]] = {
            name: np.average([event[name] for event in group], weights=weights) for name in ("loss", "accuracy")
        }
    return joined


def _confusion(evaluation: Evaluation) -> list[page.Block]:
    matrix = np.asarray(evaluation.confusion_matrix, np.int64)
    names = evaluation.class_names
    off_diagonal = matrix - np.diag(np.diag(matrix))
    pairs = sorted(zip(*np.nonzero(off_diagonal), strict=True), key=lambda pair: -off_diagonal[pair])[:15]
    blocks: list[page.Block] = []
    if len(names) <= _MAX_DRAWN_CLASSES:
        note = "Rows are true classes, columns are predictions; blue is correct, red is wrong."
        blocks.append(page.Chart(title="Confusion matrix", note=note, svgs=[charts.confusion("", matrix, names)]))
    if pairs:
        rows = [[names[true], names[predicted], int(off_diagonal[true, predicted])] for true, predicted in pairs]
        blocks.append(page.Table(title="Most confused", columns=["true", "predicted", "images"], rows=rows))
    return blocks


def _mistakes(dataset: Dataset, predictions: Predictions) -> page.Block:
    labels, probabilities = predictions.labels, predictions.probabilities
    predicted = probabilities.argmax(axis=1)
    ranked = ranked_mistakes(labels, probabilities)
    if not ranked:
        return page.Text(title="Worst errors", text="All test images were classified correctly.")
    indices = [
        index
        for rank, index in enumerate(ranked)
        if (labels[ranked[:rank]] == labels[index]).sum() < _MISTAKES_PER_CLASS
    ][:_NUM_MISTAKES]
    images = [
        page.Thumbnail(
            image_bytes=record.image_bytes,
            caption=f"{dataset.class_names[record.label]} predicted as {dataset.class_names[predicted[index]]}",
            detail=f"{probabilities[index, predicted[index]]:.0%} confident, {record.file_name}",
        )
        for index, record in zip(indices, dataset.records("test", indices), strict=True)
    ]
    note = (
        f"{len(ranked)} of {len(labels)} test images are misclassified; the most confident errors are shown, at most"
        f" {_MISTAKES_PER_CLASS} per true class."
    )
    return page.Gallery(title="Worst errors", note=note, images=images)
