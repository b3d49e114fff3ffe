"""Evaluate the best checkpoint on the test split and write the report on the model."""

import sys

import numpy as np

from trainer import command_line
from trainer.checkpoints import best
from trainer.command_line import reported as reported  # a component imports `reported` from here
from trainer.data import dataset
from trainer.data.stored.shards import damage_named
from trainer.files import storage
from trainer.results import evaluation
from trainer.results.evaluation import Evaluation
from vertex_gpu_training.userinput import cli, paths


def evaluate(
    *, dataset_directory: str, checkpoint_directory: str, report_path: str, is_noted: bool = False
) -> Evaluation:
    """Evaluate the checkpoint that was best on the validation split.

    Args:
        dataset_directory: The dataset that the run was trained on.
        checkpoint_directory: Of the run, finished or not.
        report_path: File for the HTML report.
        is_noted: Whether the accuracy is recorded next to the checkpoints (`trainer.checkpoints.outcome`).

    Raises:
        UserError: There is no validated checkpoint, or the run was trained on another dataset.
    """
    command_line.set_environment()
    paths.check("checkpoint directory", checkpoint_directory)
    storage.check_output("report", report_path)
    data = dataset.load(paths.check("dataset", dataset_directory))
    data.check_shards("test")
    chosen = best.find(checkpoint_directory, data)
    from trainer.learner import libraries

    libraries.load()
    from trainer.checkpoints import outcome, restored
    from trainer.data import batches, examples, staging
    from trainer.results.report import model as report

    trained = restored.model_of(chosen, data)
    data = staging.stage(data, "test")
    with damage_named():
        test = examples.load_split(data, "test")
        probabilities = batches.predict(trained.model, test)
    result = evaluation.score(np.asarray(test.labels), probabilities, list(data.class_names))
    html = report.render(result, data, probabilities, trained=trained, checkpoint_directory=checkpoint_directory)
    storage.write_output(report_path, html)
    if is_noted:
        outcome.note_evaluation(checkpoint_directory, step=trained.checkpoint.step, accuracy=result.accuracy)
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.evaluate", description=__doc__)
    parser.add_argument("--dataset", required=True, metavar="DIR", help="the dataset that the run was trained on")
    parser.add_argument("--checkpoint-directory", required=True, metavar="DIR", help="the run's checkpoints")
    parser.add_argument("--report", default="evaluation.html", metavar="FILE", help="HTML report [%(default)s]")
    options = parser.parse_args(arguments)
    result = evaluate(
        dataset_directory=options.dataset, checkpoint_directory=options.checkpoint_directory, report_path=options.report
    )
    for name, value in result.metrics.items():
        print(f"{name}: {value:g}")
    print(f"report: {options.report}")
    return 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
