"""Train a model on a prepared dataset: `python -m trainer.task --dataset DIR --checkpoint-directory DIR`.

Start it again with the same arguments and it goes on where it was; a run that is finished says so.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from etils import epath

from trainer import cluster, command_line, config, dataset, models, run_identity, storage
from trainer.checkpoints import refuse_other_run
from trainer.config import TrainConfig
from trainer.dataset import Dataset
from trainer.errors import UserError
from trainer.signals import StopRequest


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m trainer.task", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )  # fmt: skip
    made.add_argument("--list-models", action="store_true", help="describe the models and leave")
    places = made.add_argument_group("places")
    places.add_argument("--dataset", metavar="DIR", help="folder that `python -m trainer.prepare` made (required)")
    places.add_argument(
        "--checkpoint-directory", metavar="DIR", default="",
        help="where checkpoints, events and result.json go [$AIP_CHECKPOINT_DIR, or JOB_DIR/checkpoints]",
    )  # fmt: skip
    places.add_argument("--job-dir", metavar="DIR", default="", help="as AI Platform Training passed it")
    config.add_flags(made)
    identity = made.add_argument_group("identity")
    identity.add_argument("--run-label", default="", metavar="TEXT", help="makes an equal run another run [empty]")
    running = made.add_argument_group("running (none of these changes what is computed)")
    running.add_argument(
        "--checkpoint-every-steps",
        type=int,
        default=0,
        metavar="N",
        help="save every N steps; 0: not by steps [%(default)s]",
    )
    running.add_argument(
        "--checkpoint-every-seconds", type=float, default=60.0, metavar="T",
        help="save when T seconds have passed since the last save; 0: not by time [%(default)s]",
    )  # fmt: skip
    running.add_argument(
        "--keep-checkpoints",
        type=int,
        default=3,
        metavar="N",
        help="newest checkpoints to keep, besides the best [%(default)s]",
    )
    running.add_argument(
        "--exact", action="store_true", help="same bits on every run and after every resume, at some cost in speed"
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Command line of the training."""
    options = parser().parse_args(arguments)
    if options.list_models:
        print(models.listing())
        return 0
    # From here on a stop request is remembered: imports and tracing take seconds too.
    stop = StopRequest().install()
    _check(options)
    train_config = config.from_namespace(options)
    cluster.refuse_unsupported(os.environ)
    directory = _checkpoint_directory(options)
    data = dataset.load(options.dataset)
    identity = run_identity.identity(train_config, data.fingerprint, options.run_label)
    if result := run_identity.read_result(directory):
        refuse_other_run(result.get("identity", {}), identity, directory)
        if run_identity.is_finished(directory):
            print(f"run {result['run_id']} is finished: {_summary(result)}; nothing to do")
            return 0
    return _train(options, train_config, data, identity, directory, stop)


def _train(
    options: argparse.Namespace, train_config: TrainConfig, data: Dataset, identity: dict[str, Any], directory: str,
    stop: StopRequest,
) -> int:  # fmt: skip
    if options.exact:
        # oneDNN's kernels may sum in another order from run to run. Read when TensorFlow is imported.
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    import tensorflow as tf

    from trainer import batches, events, loop, observers
    from trainer.learner import Learner

    if options.exact:
        tf.config.experimental.enable_op_determinism()
    order = batches.Order(
        num_examples=data.num_examples["train"],
        global_batch_size=train_config.global_batch_size,
        seed=train_config.seed,
    )
    num_steps = train_config.epochs * order.steps_per_epoch
    run = loop.Run(
        run_id=run_identity.run_id(train_config, data.fingerprint, options.run_label), identity=identity,
        checkpoint_directory=directory, num_steps=min(num_steps, train_config.max_steps or num_steps),
        checkpoint_every_steps=options.checkpoint_every_steps,
        checkpoint_every_seconds=options.checkpoint_every_seconds, keep_checkpoints=options.keep_checkpoints,
    )  # fmt: skip
    learner = Learner(
        train_config, cluster.distribution_strategy(), image_size=data.image_size, num_classes=data.num_classes,
        num_steps=run.num_steps,
    )  # fmt: skip
    _make(directory)
    log = events.EventLog(directory, events.replica_name(os.environ))
    board = observers.tensorboard(os.environ.get("AIP_TENSORBOARD_LOG_DIR", ""))
    observe = observers.all_of([log.write, board, observers.console(run.num_steps)])
    observe(
        "start", run_id=run.run_id, model=train_config.model, num_steps=run.num_steps, pid=os.getpid(),
        steps_per_epoch=order.steps_per_epoch, global_batch_size=order.global_batch_size, exact=options.exact,
        num_devices=learner.distribution_strategy.num_replicas_in_sync,
    )  # fmt: skip
    exit_code = 1
    try:
        training, validation = (batches.load_split(data, split) for split in ("train", "validation"))
        result = loop.train(run, learner, training, validation, order, observe=observe, stop=stop)
        exit_code = 0 if result else stop.exit_code
    except UserError:
        exit_code = 2
        raise
    finally:
        observe("exit", code=exit_code)
    if result:
        print(f"run {run.run_id} is finished: {_summary(result)}")
    return exit_code


def _check(options: argparse.Namespace) -> None:
    if not options.dataset:
        raise UserError("--dataset is missing; give the folder that `python -m trainer.prepare` made")
    for name, lowest in (("checkpoint_every_steps", 0), ("checkpoint_every_seconds", 0), ("keep_checkpoints", 1)):
        if not getattr(options, name) >= lowest:
            raise UserError(
                f"--{name.replace('_', '-')}={getattr(options, name)} is too small; expected at least {lowest}"
            )


def _checkpoint_directory(options: argparse.Namespace) -> str:
    directory: str = options.checkpoint_directory or os.environ.get("AIP_CHECKPOINT_DIR", "")
    if not directory and options.job_dir:
        directory = options.job_dir.rstrip("/") + "/checkpoints"
    if not directory:
        raise UserError(
            "--checkpoint-directory is missing (AIP_CHECKPOINT_DIR and --job-dir are not set either); give a folder"
        )
    if not storage.is_object_store(directory) and os.path.exists(directory) and not os.path.isdir(directory):
        raise UserError(f"checkpoint directory {directory!r} is a file; give a folder")
    return directory.rstrip("/")


def _make(directory: str) -> None:
    try:
        epath.Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"checkpoint directory {directory!r} cannot be made ({error.strerror or error})") from error


def _summary(result: dict[str, Any]) -> str:
    return (
        f"{result['final_step']} steps, best at step {result['best_step']} with validation accuracy"
        f" {result['validation_accuracy']:.4f}"
    )


if __name__ == "__main__":
    sys.exit(command_line.run(main))
