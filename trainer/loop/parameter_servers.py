"""Training with parameter servers: the workers take turns as they come, so it is best effort and never exact.

The chief leads: it hands steps to the workers, waits for them every few seconds, validates and saves. The loop is the
same as everywhere else. Which update a worker's gradients meet depends on timing, a step of a worker that is lost
may be taken twice, and there are no digests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from trainer.checkpoints import identity as run_identity
from trainer.checkpoints import variables
from trainer.cluster import distribution
from trainer.cluster.watchdog import Watchdog
from trainer.data.examples import Examples, ExamplesInMemory
from trainer.data.sampler import Sampler
from trainer.files.observers import Observer
from trainer.learner.learner import Learner, Score, Steps
from trainer.loop import loop
from trainer.loop.agreement import Agreement
from userinput.errors import UserError

if TYPE_CHECKING:
    from trainer.loop.training import Training

MAX_SPLIT_BYTES = 2**30
"""Each worker holds the whole training split; it is sent to them in one message, and those have a limit of 2 GiB."""
_SECONDS_BETWEEN_LOOKS = 2.0


def run(training: Training, observe: Observer, watchdog: Watchdog) -> int:
    """Lead, or serve until the run is done; the exit code."""
    if training.cluster.task_type == "chief":
        return _lead(training, observe, watchdog)
    return _serve(training, observe, watchdog)


def _serve(training: Training, observe: Observer, watchdog: Watchdog) -> int:
    server = distribution.serve(training.cluster)
    training.stop.install()
    training.tell_start(1, observe)
    # The server has no end of its own: the service stops it after the chief, and result.json tells it elsewhere.
    while not training.stop.is_set:
        watchdog.beat()
        if run_identity.is_finished(training.directory):
            return 0
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    del server
    return training.stop.exit_code


def _lead(training: Training, observe: Observer, watchdog: Watchdog) -> int:
    learner = AsynchronousLearner(training)
    training.stop.install()
    training.tell_start(len(training.cluster.addresses.get("worker", ())), observe)
    training_split, validation = training.load("train", observe), training.load("validation", observe)
    observe("notice", message="parameter servers: the order of updates depends on timing; no two runs are equal")
    agreement = Agreement(
        learner.add_up,
        is_chief=True,
        stop=training.stop,
        notices=training.hear_notices,
        watchdog=watchdog,
        observe=observe,
    )
    is_finished = loop.train(
        training.loop_run(), learner, training_split, validation, training.order(), agreement=agreement,
        observe=observe,
    )  # fmt: skip
    if is_finished:
        training.tell_end()
        return 0
    return training.stop.exit_code


class AsynchronousLearner(Learner):
    """A learner whose variables lie on the parameter servers and whose steps are taken by the workers."""

    def __init__(self, training: Training) -> None:
        """Connect to the servers and build the model there.

        Raises:
            UserError: as for any learner.
        """
        made = distribution.make(training.cluster)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(made)
        if made.num_replicas_in_sync > 1:
            raise UserError(
                f"parameter servers take one GPU a worker, these have {made.num_replicas_in_sync}; give each machine"
                " one, or train without parameter servers (worker pool 2)"
            )
        fields = training.learner_fields()
        super().__init__(training.config, made, **fields)
        # On the chief's own device: for validation, and outside the strategy, which has no device here.
        self._local = Learner(training.config, tf.distribute.get_strategy(), **fields)
        self._take_step = tf.function(self._one_step)

    def batches(self, examples: Examples, order: Sampler, stop_step: int) -> Any:
        """Iterators on the workers, each of which gives the whole split again and again, without copying it."""
        del stop_step
        num_bytes = examples.num_bytes
        if not isinstance(examples, ExamplesInMemory):
            raise UserError(
                "the training split does not fit into the memory of the chief, as parameter servers need it; train"
                " without them (worker pool 2), or take a machine with more memory"
            )
        if num_bytes > MAX_SPLIT_BYTES:
            raise UserError(
                f"the training split has {num_bytes / 2**30:.1f} GiB in memory; parameter servers take at most"
                f" {MAX_SPLIT_BYTES / 2**30:g}: train without them (worker pool 2)"
            )
        self._examples, self._order = examples, order

        def split() -> tf.data.Dataset:
            return tf.data.Dataset.from_tensors((examples.images, examples.labels)).repeat()

        return iter(self._coordinator.create_per_worker_dataset(split))

    def train(self, iterator: Any, num_steps: int) -> Steps:
        """Hand out a number of steps and wait for them."""
        first = self.step
        rows = [
            self._coordinator.schedule(self._take_step, args=(iterator, tf.constant(first + number, tf.int64)))
            for number in range(num_steps)
        ]
        self._coordinator.join()
        # The count of the steps that were handed out: a worker's that was lost and done again counts once.
        self.step = first + num_steps
        values = np.stack([row.fetch() for row in rows])
        return Steps(losses=values[:, 0], accuracies=values[:, 1], digests=np.zeros(0, np.uint64))

    def _one_step(self, iterator: Any, step: tf.Tensor) -> tf.Tensor:
        images, labels = next(iterator)
        with tf.device("CPU:0"):
            indices = self._order.indices(step)
            whole, draws = self._examples, self._order.random_numbers(step)
            here = ExamplesInMemory(images=images, labels=labels, image_size=whole.image_size, crop=whole.crop)
            pixels, classes = here.gather(indices, draws)
            batch = (pixels, classes, draws, indices, tf.range(self._order.global_batch_size, dtype=tf.int64))
        row = self.distribution_strategy.run(self._train_replica, args=(batch, step))
        # For the learning rate, while the chief waits.
        self._step.assign_add(1)
        return row

    def evaluate(self, examples: Examples, next_rounds: Callable[[int], int] = lambda left: left) -> Score | None:
        """As any learner, on a copy of the weights."""
        variables.assign(self._local.model.variables, variables.values(self.model.variables))
        return self._local.evaluate(examples, next_rounds)
