"""The two roles beside the loop's workers, neither of which is exact: parameter servers and the evaluator.

With parameter servers, the chief hands the steps of a block to the workers, waits for them, validates and saves; the
loop is the usual one. The order of updates depends on timing, a step of a lost worker may be taken twice, and there are
no digests. The evaluator is a machine that evaluates every new checkpoint while the others train.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from exact_resume.checkpoints import checkpoints, manifest, result_file
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.loop import Block, Stopped
from exact_resume.workers.cluster import Cluster
from exact_resume.workers.peers import watched
from exact_resume.workers.watchdog import leave
from localvertex._base.userinput.errors import UserError
from trainer.checkpoints import variables
from trainer.data.examples import Examples, ExamplesInMemory
from trainer.data.sampler import Sampler
from trainer.learner import distribution, random_numbers
from trainer.learner.learner import Learner, Parts, Score, Steps, in_one_part
from trainer.loop.training import Training

_MAX_SPLIT_BYTES = 2**30
"""Each worker gets the whole training split in one message, and messages are limited to 2 GiB."""
_POLL_SECONDS = 1.0
_ROUNDS_PER_CALL = 4
"""Batches per graph call of the evaluator; a stop request waits for them."""


def serve(training: Training) -> int:
    """Serve as a parameter server or as one of its workers until the run is finished; return the exit code.

    Raises:
        TimedOut: The chief has not come in time.
    """
    server = distribution.serve(training.cluster)
    training.stop.install()
    training.log_start(1)
    (chief,), patience = training.peers("chief"), training.patience()
    # A server never exits on its own: result.json ends it, or the loss of the chief.
    while not training.stop.is_set:
        training.folder.watchdog.beat()
        if result_file.is_finished(training.directory):
            return 0
        if reason := chief.loss(may_return=False):
            leave(reason, training.folder.log_event)
        if not chief.was_alive:
            patience.check([chief.name])
        time.sleep(_POLL_SECONDS)
    del server
    return training.stop.exit_code


def lead(training: Training) -> int:
    """Train as the chief of parameter servers; return the exit code."""
    with watched(training.peers("worker", "ps"), lambda reason: leave(reason, training.folder.log_event)):
        learner = AsynchronousLearner(training)
        remarks = random_numbers.check(
            learner.local.model, tf.distribute.get_strategy(), training.config.model, exact=False
        )
        training.log_start(len(training.cluster.addresses.get("worker", ())))
        examples, validation = training.load("train"), training.load("validation")
        for message in (*remarks, "parameter servers: the order of updates depends on timing; no two runs are equal"):
            training.folder.notice(message)
        training.train(learner, examples, validation, training.sampler())
        return 0


class AsynchronousLearner(Learner):
    """A learner whose variables are on the parameter servers and whose steps are taken by the workers."""

    def __init__(self, training: Training) -> None:
        """Connect to the servers and build the model there.

        Raises:
            UserError: The reasons of any learner, or a worker has several GPUs.
        """
        with training.connecting():
            strategy = distribution.make(training.cluster)
            self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        if strategy.num_replicas_in_sync > 1:
            raise UserError(
                f"parameter servers support one GPU per worker, these workers have {strategy.num_replicas_in_sync};"
                " give each machine one, or train without parameter servers (worker pool 2)"
            )
        arguments = training.learner_arguments()
        super().__init__(training.config, strategy, **arguments)
        self.local = Learner(training.config, tf.distribute.get_strategy(), **arguments)
        """On the chief's own device, for validation; the distribution strategy has no device here."""
        self._take_step = tf.function(self._one_step, autograph=False)

    def batches(self, examples: Examples, sampler: Sampler, stop_step: int) -> Any:
        """Return iterators on the workers, each of which repeats the whole split without copying it."""
        del stop_step
        if not isinstance(examples, ExamplesInMemory):
            raise UserError(
                "the training split does not fit into the chief's memory, which parameter servers require;"
                " train without them (worker pool 2), or use a machine with more memory"
            )
        if (num_bytes := examples.num_bytes) > _MAX_SPLIT_BYTES:
            raise UserError(
                f"the training split has {num_bytes / 2**30:.1f} GiB in memory, but parameter servers support at most"
                f" {_MAX_SPLIT_BYTES / 2**30:g}; train without them (worker pool 2)"
            )
        self._examples, self._sampler = examples, sampler

        def split() -> tf.data.Dataset:
            return tf.data.Dataset.from_tensors((examples.images, examples.labels)).repeat()

        return iter(self._coordinator.create_per_worker_dataset(split))

    def train(self, iterator: Any, num_steps: int) -> Steps:
        """Schedule a number of steps on the workers and wait for them."""
        first = self.step
        rows = [
            self._coordinator.schedule(self._take_step, args=(iterator, tf.constant(first + number, tf.int64)))
            for number in range(num_steps)
        ]
        self._coordinator.join()
        # A step that was repeated because its worker was lost counts once.
        self.step = first + num_steps
        values = np.stack([row.fetch() for row in rows])
        return Steps(losses=values[:, 0], accuracies=values[:, 1], digests=np.zeros(0, np.uint64))

    def _one_step(self, iterator: Any, step: tf.Tensor) -> tf.Tensor:
        images, labels = next(iterator)
        with tf.device("CPU:0"):
            indices = self._sampler.indices(step)
            whole, random_numbers = self._examples, self._sampler.random_numbers(step)
            local = ExamplesInMemory(images=images, labels=labels, image_size=whole.image_size, crop=whole.crop)
            pixels, classes = local.gather(indices, random_numbers)
            positions = tf.range(self._sampler.global_batch_size, dtype=tf.int64)
            batch = (pixels, classes, random_numbers, indices, positions)
        row = self.distribution_strategy.run(self._train_replica, args=(batch, step))
        # For the learning rate, while the chief waits.
        self._step.assign_add(1)
        return row

    def evaluate(self, examples: Examples, parts: Parts = in_one_part) -> Score:
        """Evaluate a copy of the weights on the chief."""
        variables.assign(self.local.model.variables, variables.values(self.model.variables))
        self.local.refresh()
        return self.local.evaluate(examples, parts)


def evaluate(training: Training) -> int:
    """Evaluate checkpoints as the evaluator until the last one is done; return the exit code.

    The training itself still decides which checkpoint is the best, at the ends of epochs, because that choice must not
    depend on the speed of another machine.
    """
    learner, watchdog = training.learner(distribution.make(Cluster())), training.folder.watchdog
    training.log_start(learner.num_replicas)
    validation, sampler = training.load("validation"), training.sampler()
    done, best = 0, Best()

    def parts(num_rounds: int) -> Iterator[Block]:
        for first in range(0, num_rounds, _ROUNDS_PER_CALL):
            watchdog.beat()
            if training.stop.is_set:
                raise Stopped(training.stop.exit_code)
            yield Block(first_step=first, num_steps=min(_ROUNDS_PER_CALL, num_rounds - first))

    while not training.stop.is_set:
        watchdog.beat()
        result = result_file.read_result(training.directory)
        newer = [step for step in reversed(checkpoints.steps(training.directory)) if step > done]
        for step in newer:
            if checkpoint := _load(training, step):
                started = time.monotonic()
                learner.restore(checkpoint)
                score = learner.evaluate(validation, parts)
                found = Best(step=step, accuracy=score.accuracy, loss=score.loss, score=score.score)
                training.folder.log_event(
                    "evaluate",
                    split="validation",
                    step=step,
                    epoch=step / sampler.steps_per_epoch,
                    **score.fields(),
                    is_best=best.is_beaten_by(found),
                    seconds=time.monotonic() - started,
                )
                best = found if best.is_beaten_by(found) else best
            done = step
        if not newer:
            if result:
                return 0
            time.sleep(_POLL_SECONDS)
    return training.stop.exit_code


def _load(training: Training, step: int) -> Checkpoint | None:
    try:
        checkpoint = checkpoints.load(training.directory, step)
    except manifest.TornCheckpoint as error:
        # Perhaps only removed in the meantime because there are newer ones.
        training.folder.notice(f"{manifest.name(step)} was skipped: {error}")
        return None
    training.folder.refuse_other_run(checkpoint.identity)
    return checkpoint
