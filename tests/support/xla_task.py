"""`trainer.task` as on a machine with a GPU: XLA is tried in a child, with the program of $TRIAL if there is one,
which has $TRIAL_SECONDS.

It prints whether TensorFlow has initialised its devices by then, whether the child is gone, and whether XLA is used.
"""

import os
import sys

import psutil
import tensorflow as tf

from trainer import command_line, task
from trainer.learner import distribution
from trainer.learner.learner import Learner
from trainer.loop import speed
from trainer.loop.xla import trial as xla_trial

_run, _use_xla = xla_trial.run, Learner.use_xla


def _initialised() -> str:
    try:
        # TensorFlow allows it before only.
        tf.config.threading.set_inter_op_parallelism_threads(2)
    except RuntimeError:
        return "initialised"
    return "not initialised"


def _observed(*arguments: object, **options: object) -> xla_trial.Outcome:
    before = _initialised()
    if program := os.environ["TRIAL"]:
        command = [sys.executable, "-c", f"import json, os, signal, sys, time; {program}"]
        options = {**options, "command": command, "limit_seconds": float(os.environ["TRIAL_SECONDS"])}
    outcome = _run(*arguments, **options)
    children = len(psutil.Process().children(recursive=True))
    print(f"devices before the trial: {before}; after it: {_initialised()}, {children} children", flush=True)
    return outcome


def _observe_use(learner: Learner, on: bool) -> None:
    print(f"compiled passes: {on}", flush=True)
    _use_xla(learner, on)


if __name__ == "__main__":
    distribution.has_gpu = lambda: True
    # A run that is short enough for a test counts as a long one, and has no GPU for its collective operations.
    speed.MIN_REMAINING_SECONDS, xla_trial._MIN_STEPS = 0.0, 0
    distribution._nccl = tf.distribute.experimental.CommunicationOptions
    xla_trial.run, Learner.use_xla = _observed, _observe_use
    sys.exit(command_line.run(task.main))
