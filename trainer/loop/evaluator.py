"""Side-car evaluation: a machine of its own that evaluates every new checkpoint, while the others train on."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from trainer.checkpoints import checkpoints, variables
from trainer.checkpoints import identity as run_identity
from trainer.checkpoints.checkpoints import Best, Checkpoint
from trainer.cluster import distribution
from trainer.cluster.cluster import Cluster
from trainer.cluster.watchdog import Watchdog
from trainer.files.observers import Observer

if TYPE_CHECKING:
    from trainer.loop.training import Training

_SECONDS_BETWEEN_LOOKS = 2.0
_ROUNDS_PER_CALL = 4
"""Batches in a graph call: a stop waits for them."""


def run(training: Training, observe: Observer, watchdog: Watchdog) -> int:
    """Evaluate checkpoints until the last one is done; the exit code.

    Which checkpoint is the best is still decided by the training itself, at the ends of the epochs: that choice must
    not depend on how fast another machine is.
    """
    learner = training.learner(distribution.make(Cluster()))
    training.tell_start(learner.num_replicas, observe)
    validation = training.load("validation", observe)
    done, best = 0, Best()

    def rounds(left: int) -> int:
        watchdog.beat()
        return 0 if training.stop.is_set else min(left, _ROUNDS_PER_CALL)

    while not training.stop.is_set:
        watchdog.beat()
        result = run_identity.read_result(training.directory)
        newer = [step for step in reversed(checkpoints.steps(training.directory)) if step > done]
        for step in newer:
            if training.stop.is_set:
                break
            if checkpoint := _load(training, step, observe):
                started = time.monotonic()
                variables.assign(learner.model.variables, checkpoint.arrays[: len(learner.model.variables)])
                score = learner.evaluate(validation, rounds)
                if score is None:
                    break
                is_best = best.is_beaten_by(score.accuracy, score.loss)
                best = Best(step=step, accuracy=score.accuracy, loss=score.loss) if is_best else best
                order = dataclasses.replace(
                    training.order(), global_batch_size=checkpoint.identity["global_batch_size"]
                )
                observe(
                    "evaluate", split="validation", step=step, epoch=step / order.steps_per_epoch,
                    loss=score.loss, accuracy=score.accuracy, is_best=is_best, seconds=time.monotonic() - started,
                )  # fmt: skip
            done = step
            watchdog.beat()
        if result and not newer:
            return 0
        if not newer:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    return training.stop.exit_code


def _load(training: Training, step: int, observe: Observer) -> Checkpoint | None:
    try:
        checkpoint = checkpoints.load(training.directory, step)
    except checkpoints.TornCheckpoint as error:
        # Also one that was removed in the meantime because newer ones are there.
        observe("notice", message=f"{checkpoints.name(step)} was passed over: {error}")
        return None
    identity = training.identity
    if training.options.batch_size_per_replica:
        identity = run_identity.with_devices_of(checkpoint.identity, identity)
    checkpoints.refuse_other_run(checkpoint.identity, identity, training.directory)
    return checkpoint
