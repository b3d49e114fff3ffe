"""Model, optimizer and step under one distribution strategy: trains many steps in a graph call, and evaluates.

Legend: B batch of a replica, K classes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
import tensorflow as tf

from trainer import models, optimizers
from trainer.augmentation import AUGMENTATIONS
from trainer.batches import Examples, Order, evaluation_batches, training_batches
from trainer.config import TrainConfig

EVALUATION_BATCH_SIZE = 256


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """How well the model did on a number of examples."""

    loss: float
    """Mean cross-entropy in nats."""
    accuracy: float
    """Share of examples whose most probable class is the true one, 0 to 1."""


class Learner:
    """All that changes while training. Everything is created inside the distribution strategy's scope."""

    def __init__(
        self, config: TrainConfig, distribution_strategy: tf.distribute.Strategy, *, image_size: int, num_classes: int,
        num_steps: int,
    ) -> None:  # fmt: skip
        """Build the model with its starting weights.

        Raises:
            UserError: the weights cannot be had, or the images do not fit the model.
        """
        self.config = config
        self.distribution_strategy = distribution_strategy
        self._augment = AUGMENTATIONS[config.augment]
        # Initial weights and dropout come from Keras' own seed.
        keras.utils.set_random_seed(config.seed)
        with distribution_strategy.scope():
            self.model = models.build(
                config.model, image_size=image_size, num_classes=num_classes, weights=config.weights,
                trainable=config.trainable,
            )  # fmt: skip
            self.optimizer = optimizers.build(config, num_steps)
            # Before tracing: variables made inside the traced function would be placeholders (keras#23085).
            self.optimizer.build(self.model.trainable_variables)
            self._step = tf.Variable(
                0, dtype=tf.int64, trainable=False, name="step", aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
            )

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
        generators (dropout), without a word.
        """
        return [*self.model.variables, *self.optimizer.variables]

    def batches(self, examples: Examples, order: Order, stop_step: int) -> Any:
        """Iterator over the batches from the present step on, distributed to the replicas."""

        def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
            return training_batches(
                examples, order, start_step=self.step, stop_step=stop_step, pipeline=context.input_pipeline_id,
                num_pipelines=context.num_input_pipelines,
            )  # fmt: skip

        return iter(self.distribution_strategy.distribute_datasets_from_function(pipeline))

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def train(self, iterator: Any, num_steps: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Train a number of steps in one graph call.

        Args:
            iterator: from `batches`.
            num_steps: int32 scalar; a tensor, so that another number does not trace anew.

        Returns:
            Sums over the steps of the mean loss and of the accuracy, float32 scalars.
        """
        loss, accuracy = tf.constant(0.0), tf.constant(0.0)
        for _ in tf.range(num_steps):
            pair = self.distribution_strategy.run(self._train_replica, args=(next(iterator),))
            loss += self.distribution_strategy.reduce("SUM", pair[0], axis=None)
            accuracy += self.distribution_strategy.reduce("SUM", pair[1], axis=None)
            self._step.assign_add(1)
        return loss, accuracy

    def _train_replica(self, batch: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        images, labels, draws = batch
        images = self._augment(images, draws)
        with tf.GradientTape() as tape:
            probabilities = self.model(images, training=True)
            losses = keras.losses.sparse_categorical_crossentropy(labels, probabilities)
            # Divided by the global batch, so that the sum over the replicas is the mean over all examples.
            loss = tf.reduce_sum(losses) / self.config.global_batch_size
        variables = self.model.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss, tf.reduce_sum(_hits(labels, probabilities)) / self.config.global_batch_size

    def evaluate(self, examples: Examples) -> Score:
        """Loss and accuracy over a whole split."""
        batches, num_batches = evaluation_batches(examples, min(EVALUATION_BATCH_SIZE, examples.num_examples))
        loss, hits = self._evaluate(iter(batches), tf.constant(num_batches))
        return Score(loss=float(loss) / examples.num_examples, accuracy=float(hits) / examples.num_examples)

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def _evaluate(self, iterator: Any, num_batches: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        loss, hits = tf.constant(0.0), tf.constant(0.0)
        for _ in tf.range(num_batches):
            images, labels, weights = next(iterator)
            probabilities = self.model(images, training=False)
            losses = keras.losses.sparse_categorical_crossentropy(labels, probabilities)
            loss += tf.reduce_sum(losses * weights)
            hits += tf.reduce_sum(_hits(labels, probabilities) * weights)
        return loss, hits


def _hits(labels: tf.Tensor, probabilities: tf.Tensor) -> tf.Tensor:
    """float32 [B]: 1 where the most probable class is the true one."""
    return tf.cast(tf.argmax(probabilities, axis=-1, output_type=labels.dtype) == labels, tf.float32)
