"""Evaluate the best checkpoint on the test split and write the report on the model."""

import dataclasses
import sys

from exact_resume.files import storage
from localvertex._base.userinput import cli, paths
from trainer import command_line
from trainer.checkpoints import best, seen
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.files import outputs
from trainer.models.metrics import score_of
from trainer.results import baseline, calibration, evaluation, predictions
from trainer.results.baseline import Judgement, Verdict
from trainer.results.comparison import evidence
from trainer.results.comparison.class_names import quoted_list
from trainer.results.comparison.not_comparable import NotComparable
from trainer.results.evaluation import Evaluation
from trainer.results.predictions import Predictions


def evaluate(
    *,
    dataset_directory: str,
    checkpoint_directory: str,
    report_path: str,
    predictions_path: str = "",
    is_noted: bool = False,
    minimum_score: float = 0.0,
) -> Evaluation:
    """Evaluate the best checkpoint on the test split.

    Args:
        dataset_directory: The dataset that the run was trained on.
        checkpoint_directory: Folder with the checkpoints of the run, finished or not.
        report_path: File for the HTML report.
        predictions_path: File for the predictions on validation and test images, as JSON Lines; empty for none.
        is_noted: Whether to judge the score against a constant answer, and to note it next to the checkpoints
            (`trainer.results.outcome`).
        minimum_score: Score (0 to 1) below which the metrics have a `reason` why the run makes no model.

    Raises:
        UserError: There is no validated checkpoint, or the run was trained on another dataset.
    """
    command_line.set_environment()
    paths.check("checkpoint directory", checkpoint_directory)
    outputs.check_file("report", report_path)
    predictions.check_path("predictions", predictions_path, report_path)
    data = dataset.load(paths.check("dataset", dataset_directory))
    data.check_shards("validation", "test")
    chosen = best.find(checkpoint_directory, data)
    from trainer.learner import libraries

    libraries.load()
    from trainer.checkpoints import restored
    from trainer.data import staging
    from trainer.results import outcome
    from trainer.results.report import model as report

    trained = restored.model_of(chosen, data)
    staging.stage(data, "validation")
    staged = staging.stage(data, "test")
    validation, test = (predictions.predict(trained.model, staged, split) for split in ("validation", "test"))
    temperature = calibration.fit(validation)
    served = [
        dataclasses.replace(each, probabilities=calibration.apply(each.probabilities, temperature))
        for each in (validation, test)
    ]
    result = evaluation.score(
        test.labels,
        test.probabilities,
        list(data.class_names),
        train_counts=data.counts("train"),
        metric=trained.config.metric,
    )
    if never := result.never_predicted:
        print(f"warning: no test image is classified as {quoted_list(never)}; the report marks all", file=sys.stderr)
    result.metrics.update(
        temperature=temperature,
        calibration_error=calibration.expected_error(served[1]),
        uncalibrated_error=calibration.expected_error(test),
    )
    html = report.render(result, staged, served[1], trained=trained, checkpoint_directory=checkpoint_directory)
    outputs.write(report_path, html)
    if predictions_path:
        outputs.write_lines(predictions_path, predictions.lines(staged, served))
    score = result.score
    if is_noted:
        score, judgement = _judged(result, test, staged, checkpoint_directory)
        print(judgement.reason)
        outcome.note_evaluation(
            checkpoint_directory,
            step=trained.checkpoint.step,
            metric=result.metric,
            score=score,
            verdict=judgement.verdict,
            reason=judgement.reason,
        )
    if score < minimum_score:
        result.metrics["reason"] = f"{result.metric} {score:.4f} is below minimum_score {minimum_score:g}"
    return result


def _judged(
    result: Evaluation, test: Predictions, staged: Dataset, checkpoint_directory: str
) -> tuple[float, Judgement]:
    """Compare the model with the constant answer on the test images that are evidence.

    Returns:
        The score on these images, or on all images without them, and the verdict.
    """
    try:
        found = evidence.of(staged, evidence.seen_by("model", storage.join(checkpoint_directory, seen.FILE)))
        if kept := [position for position, _ in found.chosen(staged.records("test"))]:
            labels, answers = test.labels[kept], test.probabilities.argmax(axis=1)[kept]
            constant, names = result.class_names.index(result.baseline_class), result.class_names
            judgement = baseline.judge(result.metric, labels, answers, constant, names, left_out=found.left_out)
            return score_of(result.metric, labels, answers, len(names)), judgement
        reason = f"no test image is left to tell whether the model has learnt anything: {found.left_out}"
    except NotComparable as error:
        reason = str(error)
    return result.score, Judgement(verdict=Verdict.UNDECIDED, reason=reason)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.evaluate", description=__doc__)
    dataset_help = "the dataset that the run was trained on"
    parser.add_argument("--dataset", dest="dataset_directory", required=True, metavar="DIR", help=dataset_help)
    parser.add_argument("--checkpoint-directory", required=True, metavar="DIR", help="the run's checkpoints")
    report_help = "HTML report [%(default)s]"
    parser.add_argument("--report", dest="report_path", default="evaluation.html", metavar="FILE", help=report_help)
    lines_help = "file for the predictions on validation and test images, JSON Lines [none]"
    parser.add_argument("--predictions", dest="predictions_path", default="", metavar="FILE", help=lines_help)
    options = parser.parse_args(arguments)
    for name, value in evaluate(**vars(options)).metrics.items():
        print(f"{name}: {value:g}" if isinstance(value, float) else f"{name}: {cli.one_line(value)}")
    print(f"report: {options.report_path}")
    return 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
