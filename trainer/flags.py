"""The command line of `python -m trainer.task`."""

from __future__ import annotations

import argparse

from trainer import config
from trainer.checkpoints import interval as checkpoint_interval
from trainer.cluster import cluster
from userinput import cli
from userinput.errors import UserError

AUTO = "auto"
_PRECISIONS = ("auto", "float32", "bfloat16", "float16")
_XLA = ("auto", "on", "off")
_LOWEST = {
    "checkpoint_every_steps": 0,
    "checkpoint_every_seconds": 0,
    "keep_checkpoints": 1,
    "batch_size_per_replica": 0,
    "watchdog_seconds": 0,
    "logical_cpu_devices": 1,
}


def parser(description: str | None) -> argparse.ArgumentParser:
    """The command line."""
    made = cli.Parser("python -m trainer.task", description=description)
    made.add_argument("--list-models", action="store_true", help="describe the models and leave")
    places = made.add_argument_group("places")
    places.add_argument("--dataset", metavar="DIR", help="folder that `python -m trainer.prepare` made (required)")
    places.add_argument(
        "--checkpoint-directory", metavar="DIR", default="",
        help="where checkpoints, events and result.json go [$AIP_CHECKPOINT_DIR, or JOB_DIR/checkpoints]",
    )  # fmt: skip
    places.add_argument("--job-dir", metavar="DIR", default="", help="as AI Platform Training passed it")
    config.add_flags(made)
    _add_per_replica(made)
    identity = made.add_argument_group("identity")
    identity.add_argument("--run-label", default="", metavar="TEXT", help="makes an equal run another run [empty]")
    _add_running(
        made.add_argument_group("running (no other run; what is computed may round differently, see docs/training.md)")
    )
    return made


def check(options: argparse.Namespace) -> None:
    """Refuse values that argparse lets pass.

    Raises:
        UserError: a flag is missing, too small or does not go with another.
    """
    if not options.dataset:
        raise UserError("--dataset is missing; give the folder that `python -m trainer.prepare` made")
    for name, lowest in _LOWEST.items():
        value = getattr(options, name)
        if value is not None and not value >= lowest:
            raise UserError(f"--{name.replace('_', '-')}={value} is too small; expected at least {lowest}")
    if options.scale_learning_rate and not options.batch_size_per_replica:
        raise UserError("--scale-learning-rate goes with --batch-size-per-replica; give that, too, or leave it out")


def _add_per_replica(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("batch size per device (instead of --global-batch-size)")
    group.add_argument(
        "--batch-size-per-replica", type=int, default=0, metavar="B",
        help="global_batch_size becomes B times the number of devices of all machines: another number, another run",
    )  # fmt: skip
    group.add_argument(
        "--scale-learning-rate", action="store_true", help="learning_rate becomes its value times that number, too"
    )


def _add_running(running: argparse._ArgumentGroup) -> None:
    running.add_argument(
        "--distribution-strategy", choices=cluster.DISTRIBUTION_STRATEGIES, default=AUTO,
        help="how devices and machines train together; auto: as TF_CONFIG and the visible devices say [%(default)s]",
    )  # fmt: skip
    running.add_argument(
        "--checkpoint-every-steps", type=int, default=0, metavar="N",
        help="save every N steps; 0: not by steps [%(default)s]",
    )  # fmt: skip
    running.add_argument(
        "--checkpoint-every-seconds", type=_seconds_or_auto, default=None, metavar="T",
        help="save when T seconds have passed since the last save; 0: not by time [auto: sqrt(2 C M), with C the"
        f" measured seconds a save costs and M={checkpoint_interval.SECONDS_BETWEEN_FAILURES:g} s between failures]",
    )  # fmt: skip
    running.add_argument(
        "--keep-checkpoints", type=int, default=3, metavar="N",
        help="newest checkpoints to keep, besides the best [%(default)s]",
    )  # fmt: skip
    running.add_argument(
        "--exact", action="store_true", help="same bits on every run and after every resume, at some cost in speed"
    )
    running.add_argument(
        "--precision", choices=_PRECISIONS, default=AUTO,
        help="auto: bfloat16 on A100 and newer, float16 with loss scaling on V100 and T4, else float32 [%(default)s]",
    )  # fmt: skip
    running.add_argument(
        "--xla", choices=_XLA, default=AUTO,
        help="compile forward and backward pass (dropout then draws other numbers); auto: where a trial after the"
        " first steps shows that it pays, never with --exact [%(default)s]",
    )  # fmt: skip
    running.add_argument(
        "--watchdog-seconds", type=float, default=900.0, metavar="T",
        help="abort (134) after so long without progress; 0: never [%(default)g]",
    )  # fmt: skip
    running.add_argument(
        "--logical-cpu-devices", type=int, default=1, metavar="N",
        help="split the CPU into N devices, to try several devices without GPUs [%(default)s]",
    )  # fmt: skip


def _seconds_or_auto(text: str) -> float | None:
    return None if text == AUTO else float(text)
