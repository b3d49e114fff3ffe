"""Model, optimizer and step under one distribution strategy: trains many steps in a graph call, and evaluates.

Legend: R replicas (devices) of all workers together.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.config import TrainConfig
from trainer.data.batches import Shard, evaluation_batches, training_batches
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner import batch_digest, batch_normalization, optimizers, replica_step
from trainer.learner.replica_step import ReplicaStep
from trainer.models import models

EVALUATION_BATCH_SIZE = 256
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """How well the model did on a number of examples."""

    loss: float
    """Mean cross-entropy in nats."""
    accuracy: float
    """Share of examples whose most probable class is the true one, 0 to 1."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Steps:
    """What a graph call did; one entry a step."""

    losses: npt.NDArray[np.float32]
    """Mean cross-entropy (and penalties, where the model has any) of the global batch."""
    accuracies: npt.NDArray[np.float32]
    digests: npt.NDArray[np.uint64]
    """Of the global batches, as `trainer.learner.batch_digest` makes them."""


class Learner:
    """All that changes while training. Everything is created inside the distribution strategy's scope."""

    def __init__(
        self, config: TrainConfig, distribution_strategy: tf.distribute.Strategy, *, image_size: int, num_classes: int,
        num_steps: int, precision: str = "float32",
    ) -> None:  # fmt: skip
        """Build the model with its starting weights.

        Raises:
            UserError: the weights cannot be had, or the images do not fit the model.
        """
        self.config = config
        self.distribution_strategy = distribution_strategy
        self.num_replicas = distribution_strategy.num_replicas_in_sync
        # Initial weights come from Keras' own seed.
        keras.utils.set_random_seed(config.seed)
        with distribution_strategy.scope():
            self._step = tf.Variable(
                0, dtype=tf.int64, trainable=False, name="step", aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
            )
            self.model = _build(config, image_size, num_classes, precision)
            batch_normalization.fuse(self.model)
            self.optimizer = optimizers.build(config, num_steps, self._step)
            self._update = self.optimizer
            if precision == "float16":
                self._update = keras.optimizers.LossScaleOptimizer(self.optimizer)
            # Before tracing: variables made inside the traced function would be placeholders (keras#23085).
            self._update.build(self.model.trainable_variables)
        self.replica_step = ReplicaStep(model=self.model, config=config, num_replicas=self.num_replicas)
        self.use_xla(False)

    @property
    def step(self) -> int:
        """Steps done."""
        return int(self._step.numpy())

    @step.setter
    def step(self, value: int) -> None:
        self._step.assign(value)

    def variables(self) -> list[keras.Variable]:
        """Every variable that the next step depends on, in a fixed order.

        Named one by one because tf.train.Checkpoint(model=, optimizer=) leaves out the state of Keras' seed
        generators (dropout), without a word. The state of loss scaling is not among them: a run may go on on a device
        that needs none.
        """
        return [*self.model.variables, *self.optimizer.variables]

    def loss_scaling(self) -> dict[str, float]:
        """State of the loss scaling of float16; nothing in other precisions."""
        if self._update is self.optimizer:
            return {}
        state = {"scale": self._update.dynamic_scale, "steps": self._update.step_counter}
        return {name: float(tf.convert_to_tensor(variable.value)) for name, variable in state.items()}

    def set_loss_scaling(self, state: dict[str, float]) -> None:
        """Go on with a state of `loss_scaling`; nothing happens if this or the former device needs none."""
        if state and self._update is not self.optimizer:
            self._update.dynamic_scale.assign(state["scale"])
            self._update.step_counter.assign(int(state["steps"]))

    def use_xla(self, on: bool) -> None:
        """Compile forward and backward pass of each replica with XLA from the next call on, or not."""
        compute = self.replica_step.gradients
        self._gradients = tf.function(compute, jit_compile=True) if on else compute
        self._train = tf.function(self._train_steps, reduce_retracing=True)
        self._evaluate = tf.function(self._evaluate_rounds, reduce_retracing=True)
        self._sum = tf.function(self._sum_over_replicas)

    def batches(self, examples: Examples, order: Sampler, stop_step: int) -> Any:
        """Iterator over the batches from the present step on, distributed to the replicas."""
        start_step = self.step
        return self._distributed(
            lambda shard: training_batches(examples, order, start_step=start_step, stop_step=stop_step, shard=shard)
        )

    def train(self, iterator: Any, num_steps: int) -> Steps:
        """Train a number of steps in one graph call; the host waits for the device once."""
        rows = self._train(iterator, tf.constant(num_steps)).numpy()
        return Steps(losses=rows[:, 0], accuracies=rows[:, 1], digests=batch_digest.join(rows[:, 2:]))

    def _train_steps(self, iterator: Any, num_steps: tf.Tensor) -> tf.Tensor:
        # A tensor as number of steps, so that another number does not trace anew.
        rows = tf.TensorArray(tf.float32, size=num_steps, element_shape=(2 + batch_digest.NUM_PIECES,))
        for number in tf.range(num_steps):
            row = self.distribution_strategy.run(self._train_replica, args=(next(iterator), self._step.read_value()))
            # The same on every replica.
            rows = rows.write(number, self.distribution_strategy.experimental_local_results(row)[0])
            self._step.assign_add(1)
        return rows.stack()

    # As in Keras' own `fit`; the conversion of everything that is called here takes a second of the start.
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def _train_replica(self, batch: tuple[tf.Tensor, ...], step: tf.Tensor) -> tf.Tensor:
        variables = self.model.trainable_variables
        scaled = self._update is not self.optimizer
        gradients, changed, row = self._gradients(
            [variable.value for variable in variables], self.replica_step.others_at(step), batch,
            self._update.dynamic_scale.value if scaled else tf.constant(1.0),
        )  # fmt: skip
        return self.replica_step.update(gradients, changed, row, self._update)

    def time_step(self, iterator: Any, *, xla: bool, seconds: float = 1.0) -> float:
        """Seconds of the forward and backward pass of a step on this worker's devices; nothing is changed.

        Args:
            iterator: from `batches`, of its own.
            xla: whether to compile the pass.
            seconds: how long to measure, about.
        """
        compute = tf.function(self.replica_step.gradients, jit_compile=xla)

        def replica(batch: tuple[tf.Tensor, ...]) -> tf.Tensor:
            values = [variable.value for variable in self.model.trainable_variables]
            gradients, _, row = compute(values, self.replica_step.others_at(self._step), batch, tf.constant(1.0))
            # Whatever is not used would not be computed.
            return row[0] + tf.add_n([tf.reduce_sum(tf.cast(g, tf.float32)) for g in gradients if g is not None])

        run = tf.function(lambda: self.distribution_strategy.run(replica, args=(next(iterator),)))
        run()
        started, num_steps = time.monotonic(), 0
        while not num_steps or time.monotonic() - started < seconds:
            self.distribution_strategy.experimental_local_results(run())[0].numpy()
            num_steps += 1
        return (time.monotonic() - started) / num_steps

    def evaluate(self, examples: Examples, next_rounds: Callable[[int], int] = lambda left: left) -> Score | None:
        """Loss and accuracy over a whole split.

        Args:
            examples: the split.
            next_rounds: asked before each graph call with the number of rounds (a batch a replica) that are left; how
                many to do in it, 0 to stop. All workers have to give the same answer.

        Returns:
            The score, or None if it was stopped.
        """
        batch_size = min(EVALUATION_BATCH_SIZE, -(-examples.num_examples // self.num_replicas))
        num_rounds = evaluation_batches(examples, batch_size, Shard(num_pipelines=self.num_replicas))[1]
        iterator = self._distributed(lambda shard: evaluation_batches(examples, batch_size, shard)[0])
        rows: list[npt.NDArray[np.float32]] = []
        while (left := num_rounds - sum(len(part) for part in rows)) > 0:
            if not (rounds := next_rounds(left)):
                return None
            rows.append(self._evaluate(iterator, tf.constant(rounds)).numpy())
        # Added up here and in double precision: the sum does not depend on how many rounds went into a call.
        loss, num_hits = (float(total) for total in np.concatenate(rows).sum(axis=0, dtype=np.float64))
        return Score(loss=loss / examples.num_examples, accuracy=num_hits / examples.num_examples)

    def _evaluate_rounds(self, iterator: Any, num_rounds: tf.Tensor) -> tf.Tensor:
        rows = tf.TensorArray(tf.float32, size=num_rounds, element_shape=(2,))
        for number in tf.range(num_rounds):
            row = self.distribution_strategy.run(self._evaluate_replica, args=(next(iterator),))
            rows = rows.write(number, self.distribution_strategy.reduce("SUM", row, axis=None))
        return rows.stack()

    def _evaluate_replica(self, batch: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        images, labels, weights = batch
        probabilities = self.model(images, training=False)
        losses = keras.losses.sparse_categorical_crossentropy(labels, probabilities)
        return tf.stack(
            [tf.reduce_sum(losses * weights), tf.reduce_sum(replica_step.hits(labels, probabilities) * weights)]
        )

    @property
    def replicas_per_worker(self) -> int:
        """Devices of this machine that train."""
        return 1 if self.num_replicas == 1 else len(self.distribution_strategy.extended.worker_devices)

    def add_up(self, values: Sequence[float]) -> list[float]:
        """Sums over the workers, each of which gives its own values: how they agree. All have to call it."""
        if self.replicas_per_worker == self.num_replicas:
            return list(values)
        sums = self._sum(tf.constant(values, tf.float64) / self.replicas_per_worker)
        return [float(value) for value in sums.numpy()]

    def _sum_over_replicas(self, values: tf.Tensor) -> tf.Tensor:
        own = self.distribution_strategy.run(tf.identity, args=(values,))
        return self.distribution_strategy.reduce("SUM", own, axis=None)

    def _distributed(self, dataset: Callable[[Shard], tf.data.Dataset]) -> Any:
        def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
            shard = Shard(
                pipeline=context.input_pipeline_id, num_pipelines=context.num_input_pipelines,
                replicas_per_pipeline=self.num_replicas // context.num_input_pipelines,
            )  # fmt: skip
            if self.num_replicas == 1:
                return dataset(shard)
            # Of a dataset that ends, the workers would ask each other before each batch whether anyone has one left.
            return dataset(shard).repeat()

        return iter(self.distribution_strategy.distribute_datasets_from_function(pipeline))


def _build(config: TrainConfig, image_size: int, num_classes: int, precision: str) -> keras.Model:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(POLICIES[precision])
    try:
        return models.build(
            config.model, image_size=image_size, num_classes=num_classes, weights=config.weights,
            trainable=config.trainable,
        )  # fmt: skip
    finally:
        keras.config.set_dtype_policy(before)
