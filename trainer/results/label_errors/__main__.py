"""Find probable label errors of training images by k-fold.

A model cannot check the labels that it was fitted to. The training split is
therefore divided into folds. For each fold, `python -m trainer.task` trains a
model on the others, which then checks the labels of the fold.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

from exact_resume.files import storage
from exact_resume.workers.signals import StopRequest
from localvertex_base.userinput import cli, paths
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import quote
from trainer import command_line, config
from trainer.command_line import TrainingError
from trainer.config import TrainConfig
from trainer.data import dataset, staging
from trainer.data.dataset import Dataset
from trainer.data.pages import page
from trainer.data.splits import check_batch_size
from trainer.files import outputs
from trainer.results import confident_learning, predictions
from trainer.results.label_errors import folds
from trainer.results.predictions import Predictions
from trainer.results.report import label_errors as section

_MAX_FOLDS = 20
_MAX_MINUTES = 10_000.0
_POLL_SECONDS = 0.2


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = _parser().parse_args(arguments)
    if not 2 <= options.folds <= _MAX_FOLDS:
        raise UserError(f"--folds={options.folds} is out of range; expected 2 to {_MAX_FOLDS}")
    # NaN is refused, too.
    if not 0 < options.max_minutes <= _MAX_MINUTES:
        raise UserError(f"--max-minutes={quote(options.max_minutes)} is out of range; expected up to {_MAX_MINUTES:g}")
    outputs.check_file("--report", options.report)
    predictions.check_path("--predictions", options.predictions, options.report)
    train_config = config.from_namespace(options)
    data = dataset.load(paths.check("DATASET", options.dataset))
    data.check_shards("train", "validation")
    if (number := data.num_examples["train"]) < confident_learning.MIN_IMAGES:
        raise UserError(f"{number} training images are too few to judge; {confident_learning.MIN_IMAGES} are needed")
    check_batch_size(train_config.global_batch_size, data.num_examples["train"] * (options.folds - 1) // options.folds)
    stop = StopRequest().install()
    with storage.scratch("label-errors") as scratch:
        with stop.immediate(lambda: sys.exit(stop.exit_code)):
            staging.stage(data, "train")
            local = staging.stage(data, "validation")
            datasets = folds.write(data, local, scratch, options.folds)
        _train_all(datasets, train_config, options.max_minutes, stop)
        with stop.immediate(lambda: sys.exit(stop.exit_code)):
            _write(datasets, data, report_path=options.report, predictions_path=options.predictions)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = cli.Parser("python -m trainer.results.label_errors", description=__doc__)
    parser.add_argument("dataset", metavar="DATASET", help="folder from `python -m trainer.prepare`")
    parser.add_argument("--folds", type=int, default=5, metavar="N", help="number of folds, 2 or more [%(default)s]")
    parser.add_argument("--report", default="label-errors.html", metavar="FILE", help="HTML report [%(default)s]")
    lines_help = "file for the predictions on all training images, JSON Lines [none]"
    parser.add_argument("--predictions", default="", metavar="FILE", help=lines_help)
    limit_help = "maximum minutes for all folds together [%(default)g]"
    parser.add_argument("--max-minutes", type=float, default=60.0, metavar="M", help=limit_help)
    config.add_flags(parser)
    return parser


def _train_all(datasets: list[str], train_config: TrainConfig, max_minutes: float, stop: StopRequest) -> None:
    started, num_folds = time.monotonic(), len(datasets)
    print(f"{num_folds} training runs, one per fold; at most {max_minutes:g} minutes", flush=True)
    for number, directory in enumerate(datasets, 1):
        if not _train(directory, train_config, started + 60 * max_minutes, stop):
            raise TrainingError(
                f"only {number - 1} of {num_folds} folds were trained in {max_minutes:g} minutes; give fewer --epochs,"
                " fewer --folds or more --max-minutes"
            )
        passed = time.monotonic() - started
        remaining = passed / number * (num_folds - number)
        print(f"fold {number} of {num_folds}: trained after {passed:.0f} s; about {remaining:.0f} s left", flush=True)


def _train(directory: str, train_config: TrainConfig, deadline: float, stop: StopRequest) -> bool:
    """Train on a dataset in a process of its own; return whether it finished before the deadline.

    Raises:
        UserError: The configuration does not fit the data.
        TrainingError: The training failed.
        SystemExit: A stop was requested.
    """
    paths = [f"--dataset={directory}", f"--checkpoint-directory={_checkpoints(directory)}"]
    words = [str(os.getpid()), "trainer.task", *paths, "--keep-checkpoints=1", *train_config.to_flags()]
    # Without the variables of a distributed job, because this run uses one machine and its own folders.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AIP_", "TF_CONFIG", "CLUSTER_SPEC"))}
    errors = pathlib.Path(directory, "errors.txt")
    with errors.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainer.results.label_errors.training", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
    try:
        while process.poll() is None:
            if stop.is_set:
                sys.exit(stop.exit_code)
            if time.monotonic() >= deadline:
                return False
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
    finally:
        process.kill()
        process.wait()
    if stop.is_set:
        # Ctrl-C goes to both processes, and the other one may end first.
        sys.exit(stop.exit_code)
    if process.returncode:
        last = (errors.read_text(errors="replace").strip() or "no message").splitlines()[-1]
        if process.returncode == cli.WRONG_INPUT:
            raise UserError(last.removeprefix("error: "))
        raise TrainingError(f"training a fold failed with exit code {process.returncode}: {last}")
    return True


def _checkpoints(directory: str) -> str:
    return os.path.join(directory, "checkpoints")


def _write(datasets: list[str], data: Dataset, *, report_path: str, predictions_path: str) -> None:
    opened = [dataset.load(directory) for directory in datasets]
    # After all training runs, because TensorFlow would hold the GPU in this process.
    found = [_predict(fold) for fold in opened]
    whole = dataclasses.replace(
        data,
        directory=os.path.dirname(datasets[0]),
        shards=data.shards | {"train": tuple(shard for fold in opened for shard in fold.shards["test"])},
    )
    every = Predictions(
        split="train",
        labels=np.concatenate([each.labels for each in found]),
        probabilities=np.concatenate([each.probabilities for each in found]),
    )
    errors = confident_learning.find(every.labels, every.probabilities)
    all_lines = "The file of predictions marks all of them." if predictions_path else ""
    made = section.block(errors, whole, [every], all_lines=all_lines)
    subtitle = f"Training images in {len(found)} folds, each checked by a model that was trained on the other folds."
    outputs.write(report_path, page.render(title="Training labels", subtitle=subtitle, blocks=[made]))
    positions = None if errors.reason else frozenset(errors.indices)
    if predictions_path:
        outputs.write_lines(predictions_path, predictions.lines(whole, [every], positions))
    accuracy = float(np.mean(every.probabilities.argmax(axis=1) == every.labels))
    name, baseline = data.constant_answer("train")
    print(f"accuracy on the labels: {accuracy:g} ({baseline:g} by always answering {quote(name)})")
    print(errors.reason or f"num_probable_label_errors: {len(errors.indices)}")
    print(f"report: {report_path}")


def _predict(fold: Dataset) -> Predictions:
    from trainer.learner import libraries

    libraries.load()
    from trainer.checkpoints import best, restored

    trained = restored.model_of(best.find(_checkpoints(fold.directory), fold), fold)
    return predictions.predict(trained.model, fold, "test")


if __name__ == "__main__":
    sys.exit(command_line.run(main))
