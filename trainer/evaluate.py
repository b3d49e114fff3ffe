"""Evaluate the best checkpoint on the test split and write the report on the model."""

import dataclasses
import sys
import traceback
from typing import TYPE_CHECKING

import numpy as np

from localvertex_base.userinput import cli, paths
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import quote
from trainer import command_line
from trainer.checkpoints import best
from trainer.command_line import TrainingError, report_errors as report_errors  # a component imports it from here
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.data.pages import page
from trainer.files import outputs
from trainer.results import baseline, confident_learning, evaluation, predictions
from trainer.results.confident_learning import LabelErrors
from trainer.results.evaluation import Evaluation
from trainer.results.predictions import Predictions
from trainer.results.report import label_errors as section

if TYPE_CHECKING:
    import keras

_MAX_WARNINGS = 10
"""Number of classes that the warnings name; the report lists all."""


def evaluate(
    *,
    dataset_directory: str,
    checkpoint_directory: str,
    report_path: str,
    predictions_path: str = "",
    is_noted: bool = False,
) -> Evaluation:
    """Evaluate the best checkpoint on the test split, and find probable label errors of validation and test images.

    Args:
        dataset_directory: The dataset that the run was trained on.
        checkpoint_directory: Folder with the checkpoints of the run, finished or not.
        report_path: File for the HTML report.
        predictions_path: File for the predictions on both splits, as JSON Lines; empty for none.
        is_noted: Whether to judge the score against a constant answer, and to note it next to the checkpoints
            (`exact_resume.checkpoints.outcome`).

    Raises:
        UserError: There is no validated checkpoint, or the run was trained on another dataset.
    """
    command_line.set_environment()
    paths.check("checkpoint directory", checkpoint_directory)
    outputs.check_file("report", report_path)
    predictions.check_path("predictions", predictions_path, report_path)
    data = dataset.load(paths.check("dataset", dataset_directory))
    data.check_shards("test")
    chosen = best.find(checkpoint_directory, data)
    from trainer.learner import libraries

    libraries.load()
    from exact_resume.checkpoints import outcome
    from trainer.checkpoints import restored
    from trainer.data import staging
    from trainer.results.report import model as report

    trained = restored.model_of(chosen, data)
    staged = staging.stage(data, "test")
    test = predictions.predict(trained.model, staged, "test")
    result = evaluation.score(
        test.labels,
        test.probabilities,
        list(data.class_names),
        train_counts=data.counts("train"),
        metric=trained.config.metric,
    )
    _warn(result)
    checked = _check_labels(trained.model, data, test, predictions_path)
    html = report.render(
        result, staged, test, label_errors=checked.section, trained=trained, checkpoint_directory=checkpoint_directory
    )
    outputs.write(report_path, html)
    if predictions_path:
        lines = predictions.lines(staged, checked.predictions, checked.positions)
        outputs.write_lines(predictions_path, lines)
    if is_noted:
        kept = baseline.distinct(staged, "test")
        judgement = baseline.judge(
            result.metric,
            test.labels[kept],
            test.probabilities.argmax(axis=1)[kept],
            data.class_names.index(result.baseline_class),
            result.class_names,
            num_copies=len(test.labels) - len(kept),
        )
        print(judgement.reason)
        outcome.note_evaluation(
            checkpoint_directory,
            step=trained.checkpoint.step,
            metric=result.metric,
            score=result.score,
            verdict=judgement.verdict,
            reason=judgement.reason,
        )
    if checked.positions is None:
        return result
    counted: dict[str, float | str] = {"num_probable_label_errors": float(len(checked.positions))}
    return dataclasses.replace(result, metrics=result.metrics | counted)


def _warn(result: Evaluation) -> None:
    """Warn of the classes that the model never predicts."""
    num_images = {each.class_name: each.num_examples for each in result.class_scores}
    for name in result.never_predicted[:_MAX_WARNINGS]:
        count = f"{num_images[name]:,} test image{'s' * (num_images[name] != 1)}"
        print(f"warning: no test image is classified as {quote(name)} ({count})", file=sys.stderr)
    if num_more := len(result.never_predicted[_MAX_WARNINGS:]):
        print(f"warning: {num_more:,} more classes are never predicted; the report lists them", file=sys.stderr)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _CheckedLabels:
    """Result of the check of the labels."""

    section: page.Block
    predictions: list[Predictions]
    """Predictions on splits whose shards are on this machine."""
    positions: frozenset[int] | None
    """Positions of the probable label errors in the predictions; None if the labels were not checked."""


def _check_labels(model: "keras.Model", data: Dataset, test: Predictions, predictions_path: str) -> _CheckedLabels:
    """Find label errors. A failure is reported, but changes neither the accuracy nor the outcome of the run."""
    from trainer.data import staging

    try:
        staged = staging.stage(data, "validation")
        both = [predictions.predict(model, staged, "validation"), test]
        found = confident_learning.find(
            np.concatenate([each.labels for each in both]), np.concatenate([each.probabilities for each in both])
        )
        all_lines = "The file of predictions marks all of them." if predictions_path else ""
        made = section.block(found, staged, both, all_lines=all_lines)
    # The model may be custom code that fails on these images with any exception.
    except Exception as error:
        if not isinstance(error, UserError | TrainingError | OSError):
            traceback.print_exc()
        reason = cli.one_line(f"The check failed: {type(error).__name__}: {error}")
        print(f"warning: the labels were not checked. {reason}", file=sys.stderr)
        made = section.block(LabelErrors(reason=reason), data, [test], all_lines="")
        return _CheckedLabels(section=made, predictions=[test], positions=None)
    return _CheckedLabels(section=made, predictions=both, positions=None if found.reason else frozenset(found.indices))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.evaluate", description=__doc__)
    parser.add_argument("--dataset", required=True, metavar="DIR", help="the dataset that the run was trained on")
    parser.add_argument("--checkpoint-directory", required=True, metavar="DIR", help="the run's checkpoints")
    parser.add_argument("--report", default="evaluation.html", metavar="FILE", help="HTML report [%(default)s]")
    lines_help = "file for the predictions on validation and test images, JSON Lines [none]"
    parser.add_argument("--predictions", default="", metavar="FILE", help=lines_help)
    options = parser.parse_args(arguments)
    result = evaluate(
        dataset_directory=options.dataset,
        checkpoint_directory=options.checkpoint_directory,
        report_path=options.report,
        predictions_path=options.predictions,
    )
    for name, value in result.metrics.items():
        print(f"{name}: {value:g}" if isinstance(value, float) else f"{name}: {cli.one_line(value)}")
    print(f"report: {options.report}")
    return 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
