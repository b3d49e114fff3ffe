"""The training role: a chief, a worker or a single machine."""

import contextlib
import dataclasses

import tensorflow as tf

from exact_resume.workers.signals import end_at_once
from exact_resume.workers.watchdog import EXIT_LOST_PEER
from localvertex_base.userinput.errors import UserError
from trainer.learner import distribution, random_numbers
from trainer.loop import loop
from trainer.loop.training import CONNECT_SECONDS, Training
from trainer.models import recipes


def train(training: Training) -> int:
    """Train as chief, worker or single machine; return the exit code."""
    strategy = _connect(training)
    learner = training.learner(strategy)
    if training.config.global_batch_size < learner.num_replicas:
        raise UserError(
            f"global_batch_size={training.config.global_batch_size} is less than the {learner.num_replicas} devices;"
            f" give at least {learner.num_replicas}, or fewer devices"
        )
    if training.options.xla == "on":
        learner.use_xla(True)
    remark = random_numbers.check(learner.model, strategy, training.config.model, exact=training.options.exact)
    training.log_start(learner.num_replicas)
    if remark:
        training.folder.notice(remark)
    examples, validation, sampler = training.load("train"), training.load("validation"), training.sampler()
    if recipes.parse(training.config.recipe).sampling:
        sampler = dataclasses.replace(sampler, labels=examples.labels)
    if loop.train(training.loop_run(), learner, examples, validation, sampler, sync=training.sync(learner)):
        training.print_result()
        return 0
    return training.stop.exit_code if training.stop.is_set else EXIT_LOST_PEER


def _connect(training: Training) -> tf.distribute.Strategy:
    """Connect to the other workers, and take the devices."""
    is_alone = training.cluster.num_workers == 1
    if not is_alone:
        # The call reports nothing while it waits.
        print(f"connecting to the other workers, for at most {CONNECT_SECONDS} s", flush=True)
    with contextlib.nullcontext() if is_alone else end_at_once(CONNECT_SECONDS):
        strategy = distribution.make(training.cluster)
    # Also because TensorFlow replaces the SIGTERM handler.
    training.stop.install()
    return strategy
