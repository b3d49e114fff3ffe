"""Train a model on a dataset that `python -m trainer.prepare` wrote.

Run it again with the same arguments and it resumes; a finished run only prints
its result. With several machines, start it on each of them with the TF_CONFIG
that Vertex AI sets.
"""

import argparse
import contextlib
import dataclasses
import os
import sys
from typing import Any, NoReturn

from exact_resume.checkpoints import ownership, result_file
from exact_resume.checkpoints.async_writer import SECONDS_BETWEEN_FAILURES
from exact_resume.files import storage
from exact_resume.workers import cluster as clusters
from exact_resume.workers.signals import StopRequest
from localvertex._base.kinds import Number
from localvertex._base.userinput import cli, paths, reading
from localvertex._base.userinput.errors import UserError
from trainer import command_line, config
from trainer.checkpoints import identity, starting_weights
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.files import outputs
from trainer.learner import libraries
from trainer.models import models, references
from trainer.settings import POSITIVE, add_flags, check, flag, setting

_AUTO = "auto"
_SECONDS = Number(lowest=0, highest=1e8)
_PATHS = ("AIP_CHECKPOINT_DIR", "AIP_TENSORBOARD_LOG_DIR")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Execution:
    """Settings that do not change which run it is."""

    checkpoint_every_steps: int = setting("save every N steps; 0: off", range(10**9 + 1), default=0)
    keep_checkpoints: int = setting("number of newest checkpoints to keep, besides the best one", POSITIVE, default=3)
    precision: str = setting(
        "auto: bfloat16 on A100 and newer, float16 with loss scaling on V100 and T4, else float32",
        (_AUTO, "float32", "bfloat16", "float16"),
        default=_AUTO,
    )
    xla: str = setting(
        "compile the forward and backward pass, which changes dropout's random numbers", ("on", "off"), default="off"
    )
    watchdog_seconds: float = setting(
        "abort (134) after this many seconds without progress; 0: never", _SECONDS, default=900.0
    )
    peer_timeout_seconds: float = setting(
        "exit (134) if the other machines have not joined after this many seconds",
        Number(lowest=1, highest=1e8),
        default=300.0,
    )
    logical_cpu_devices: int = setting(
        "split the CPU into N devices, to try several devices without GPUs", range(1, 257), default=1
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    options = parser().parse_args(arguments)
    if options.list_models:
        print(models.listing())
        return 0
    # From here on a stop request is remembered, because imports and tracing take seconds.
    stop = StopRequest().install()
    _check(options)
    options.recipe = reading.text_of(options.recipe)
    train_config = config.from_namespace(options)
    cluster = clusters.read(os.environ)
    if cluster.has_parameter_servers:
        train_config.check_for_parameter_servers(exact=options.exact)
    directory = _checkpoint_directory(options)
    if options.exact:
        # oneDNN's kernels may sum in another order from run to run. TensorFlow reads this when it is imported.
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    with _end_on_signal(stop, options.dataset, directory):
        data = dataset.load(options.dataset)
        data.check_shards("train", "validation")
        if not cluster.has_parameter_servers:
            train_config = train_config.for_data(data.counts("train"))
        train_config, options.starting_weights = starting_weights.resolve(
            train_config, options.starting_weights, directory
        )
        run_identity = identity.identity(train_config, data.fingerprint, options.run_label, exact=options.exact)
        if _is_finished(directory, run_identity, data):
            return 0
        outputs.check_folder("--checkpoint-directory", directory)
        # Seconds before TensorFlow is imported; several machines meet first and refuse it together.
        if not cluster.addresses:
            train_config.num_steps(data.num_examples["train"])
            # A function of the user's own interprets the text.
            if references.is_file(train_config.weights) and ":" not in train_config.model:
                references.require(train_config.weights)
            if found := ownership.identity_in(directory):
                ownership.refuse_other_run(
                    found, run_identity, directory, defaults=identity.DEFAULTS, way_on=identity.WAY_ON
                )
    libraries.load()
    from trainer.loop import roles
    from trainer.loop.training import Training

    return roles.run(
        Training(
            options=options,
            config=train_config,
            data=data,
            identity=run_identity,
            directory=directory,
            cluster=cluster,
            stop=stop,
        )
    )


def _end_on_signal(stop: StopRequest, *paths: str) -> contextlib.AbstractContextManager[None]:
    """Let a stop request end the process immediately while a bucket is read, which may not answer for minutes."""

    def leave() -> NoReturn:
        print(f"{stop.signal_name}: stopped before the first step; there is nothing to save", flush=True)
        raise SystemExit(stop.exit_code)

    return stop.immediate(leave) if any(map(storage.is_remote, paths)) else contextlib.nullcontext()


def _is_finished(directory: str, run_identity: dict[str, Any], data: Dataset) -> bool:
    """Refuse the result of another run; return whether this run is finished, and print its result."""
    if not (result := result_file.read_result(directory)):
        return False
    ownership.refuse_other_run(
        result.get("identity", {}), run_identity, directory, defaults=identity.DEFAULTS, way_on=identity.WAY_ON
    )
    if is_finished := result_file.is_finished(directory):
        summary = identity.summary(result, data.constant_answer("validation"))
        print(f"run {result['run_id']} is finished: {summary}; nothing to do")
    return is_finished


def _checkpoint_directory(options: argparse.Namespace) -> str:
    directory: str = options.checkpoint_directory or os.environ.get("AIP_CHECKPOINT_DIR", "")
    if not directory and options.job_dir:
        directory = paths.check("--job-dir", options.job_dir).rstrip("/") + "/checkpoints"
    if not directory:
        raise UserError(
            "--checkpoint-directory is missing (AIP_CHECKPOINT_DIR and --job-dir are not set either); give a folder"
        )
    paths.check("--checkpoint-directory", directory)
    return directory.rstrip("/") or "/"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = cli.Parser("python -m trainer.task", description=__doc__)
    made.add_argument("--list-models", action="store_true", help="describe the models and exit")
    paths = made.add_argument_group("paths")
    paths.add_argument("--dataset", metavar="DIR", help="folder from `python -m trainer.prepare` (required)")
    paths.add_argument(
        "--checkpoint-directory",
        metavar="DIR",
        default="",
        help="folder for checkpoints, event log and result.json [$AIP_CHECKPOINT_DIR, or JOB_DIR/checkpoints]",
    )
    paths.add_argument(
        "--starting-weights",
        metavar="DIR",
        default="",
        help="folder with the weights that --weights=sha256:... names, from the pipeline's step plan",
    )
    paths.add_argument(
        "--tensorboard-directory",
        metavar="DIR",
        default="",
        help="folder for TensorBoard [$AIP_TENSORBOARD_LOG_DIR, or `tensorboard` in the checkpoint folder]",
    )
    paths.add_argument("--job-dir", metavar="DIR", default="", help="job folder, as AI Platform Training passed it")
    config.add_flags(made)
    labels = made.add_argument_group("identity")
    labels.add_argument(
        "--run-label", default="", metavar="TEXT", help="distinguishes an otherwise identical run [empty]"
    )
    exact_help = "bit-identical weights on every run and after every resume, at some cost in speed"
    labels.add_argument("--exact", action="store_true", help=exact_help)
    other_help = "resume an exact run on another number or kind of devices; result.json records them"
    labels.add_argument("--allow-other-devices", action="store_true", help=other_help)
    execution = made.add_argument_group("execution (same run; results may differ slightly, see docs/training.md)")
    execution.add_argument(
        "--checkpoint-every-seconds",
        type=_seconds_or_auto,
        default=None,
        metavar="T",
        help="save T seconds after the last save; 0: off [auto: sqrt(2 C M), at least 100 C, where C is how long a"
        f" save pauses training and M={SECONDS_BETWEEN_FAILURES:g} s is the mean time between failures]",
    )
    add_flags(execution, Execution)
    return made


def _check(options: argparse.Namespace) -> None:
    """Refuse values that argparse accepts."""
    if not options.dataset:
        raise UserError("--dataset is missing; give the folder from `python -m trainer.prepare`")
    paths.check("--dataset", options.dataset)
    identity.check_run_label(options.run_label)
    if options.checkpoint_every_seconds is not None:
        check("--checkpoint-every-seconds", options.checkpoint_every_seconds, _SECONDS)
    for field in dataclasses.fields(Execution):
        check(flag(field.name), getattr(options, field.name), field.metadata["kind"])
    for name in _PATHS:
        if path := os.environ.get(name, ""):
            paths.check(name, path)
    for name in ("starting_weights", "tensorboard_directory"):
        if path := getattr(options, name):
            paths.check(flag(name), path)


def _seconds_or_auto(text: str) -> float | None:
    try:
        return None if text == _AUTO else float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds or {_AUTO}") from error


if __name__ == "__main__":
    sys.exit(command_line.run(main))
