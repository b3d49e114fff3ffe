"""Test the best checkpoint on the test split, and write the report on the model."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer import command_line
from trainer.command_line import reported as reported
from trainer.data import dataset
from trainer.files import storage
from userinput import cli


@dataclass(frozen=True, kw_only=True)
class ClassScore:
    """One class on the test split."""

    class_name: str
    precision: float
    """Share of the predictions of this class that are right; 0 if there are none."""
    recall: float
    """Share of this class's examples that are found."""
    num_examples: int


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How the best checkpoint does on the test split."""

    accuracy: float
    loss: float
    """Mean cross-entropy in nats."""
    num_examples: int
    class_names: list[str]
    confusion_matrix: list[list[int]]
    """K rows of K counts: rows are true classes, columns predicted ones."""
    class_scores: list[ClassScore]
    metrics: dict[str, float]
    """Everything that is one number, by name."""


def evaluate(
    *, dataset_directory: str, checkpoint_directory: str, report_path: str, is_noted: bool = False
) -> Evaluation:
    """Evaluate on the test split with the checkpoint that did best on the validation split.

    Args:
        dataset_directory: the dataset that the run was trained on.
        checkpoint_directory: of the run, finished or not.
        report_path: where the HTML report goes.
        is_noted: whether the accuracy is written down beside the checkpoints (`trainer.checkpoints.outcome`).

    Raises:
        UserError: no validated checkpoint, or another dataset.
    """
    command_line.set_environment()
    from trainer.checkpoints import outcome as run_outcome
    from trainer.checkpoints import restored
    from trainer.data import batches, examples
    from trainer.results import model_report

    data = dataset.load(dataset_directory)
    trained = restored.best_model(checkpoint_directory, data)
    test = examples.load_split(data, "test")
    probabilities = batches.predict(trained.model, test)
    evaluation = score(np.asarray(test.labels), probabilities, list(data.class_names))
    html = model_report.render(
        evaluation, data, probabilities, trained=trained, checkpoint_directory=checkpoint_directory
    )
    storage.write_text(report_path, html)
    if is_noted:
        run_outcome.note_evaluation(checkpoint_directory, step=trained.checkpoint.step, accuracy=evaluation.accuracy)
    return evaluation


def score(labels: npt.NDArray[np.int32], probabilities: npt.NDArray[np.float32], class_names: list[str]) -> Evaluation:
    """Metrics of predictions.

    Args:
        labels: int32 [N], true classes.
        probabilities: float32 [N, K].
        class_names: K names.
    """
    from sklearn import metrics

    classes = list(range(len(class_names)))
    predicted = probabilities.argmax(axis=1)
    # Rows of float32 add up to one only nearly, which scikit-learn warns about.
    exact = probabilities.astype(np.float64)
    loss = float(metrics.log_loss(labels, exact / exact.sum(axis=1, keepdims=True), labels=classes))
    accuracy = float(metrics.accuracy_score(labels, predicted))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        labels, predicted, labels=classes, zero_division=0.0
    )
    # Classes that the test split does not have would count as misses.
    present = support > 0
    return Evaluation(
        accuracy=accuracy,
        loss=loss,
        num_examples=len(labels),
        class_names=class_names,
        confusion_matrix=metrics.confusion_matrix(labels, predicted, labels=classes).tolist(),
        class_scores=[
            ClassScore(class_name=name, precision=float(p), recall=float(r), num_examples=int(n))
            for name, p, r, n in zip(class_names, precision, recall, support, strict=True)
        ],
        metrics={
            "accuracy": accuracy,
            "loss": loss,
            "macro_precision": float(precision[present].mean()),
            "macro_recall": float(recall[present].mean()),
            "macro_f1": float(f1[present].mean()),
            "num_test_examples": float(len(labels)),
        },
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line of evaluate."""
    parser = cli.Parser("python -m trainer.evaluate", description=__doc__)
    parser.add_argument("--dataset", required=True, metavar="DIR", help="the dataset of the run")
    parser.add_argument("--checkpoint-directory", required=True, metavar="DIR", help="the run's checkpoints")
    parser.add_argument("--report", default="evaluation.html", metavar="FILE", help="HTML report [%(default)s]")
    options = parser.parse_args(arguments)
    evaluation = evaluate(
        dataset_directory=options.dataset, checkpoint_directory=options.checkpoint_directory, report_path=options.report
    )
    for name, value in evaluation.metrics.items():
        print(f"{name}: {value:g}")
    print(f"report: {options.report}")
    return 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
