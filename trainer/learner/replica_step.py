"""What one replica does with its share of a batch: a pure function from variables and images to gradients.

Pure, because then it can be compiled by XLA wherever the variables lie, can be timed without training, and takes
dropout's random numbers from the step instead of from a state.

Legend: B batch of a replica, K classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from trainer.config import TrainConfig
from trainer.data.augmentation import AUGMENTATIONS
from trainer.learner import batch_digest

_DRAWS_PER_STEP = 4096
"""A seed generator may be asked so often in a step (layers that share one) before steps would share numbers."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplicaStep:
    """Forward and backward pass over a model."""

    model: keras.Model
    config: TrainConfig
    num_replicas: int

    def gradients(
        self,
        trainable: Sequence[tf.Tensor],
        others: Sequence[tf.Tensor],
        batch: tuple[tf.Tensor, ...],
        loss_scale: tf.Tensor,
    ) -> tuple[list[Any], dict[str, tf.Tensor], tf.Tensor]:
        """Gradients of this replica's part of the mean loss.

        Args:
            trainable: values of the model's trainable variables.
            others: values of its other variables, as `others_at` gives them.
            batch: from `trainer.data.batches.training_batches`.
            loss_scale: float32 scalar; the gradients are of the loss times this.

        Returns:
            The gradients (None for a variable without), new values of those other variables that the pass changes, by
            their place among them, and float32 [2 + NUM_PIECES]: loss, accuracy and digest, each to be added up over
            the replicas.
        """
        images, labels, draws, indices, places = batch
        images = AUGMENTATIONS[self.config.augment](images, draws)
        with tf.GradientTape() as tape:
            tape.watch(trainable)
            probabilities, after, penalties = self.model.stateless_call(
                trainable, others, images, training=True, return_losses=True
            )
            losses = keras.losses.sparse_categorical_crossentropy(labels, probabilities)
            # Divided by the global batch, so that the sum over the replicas is the mean over all examples.
            loss = tf.reduce_sum(losses) / self.config.global_batch_size
            if penalties:
                loss += tf.cast(tf.add_n(penalties), tf.float32) / self.num_replicas
            scaled = loss * loss_scale
        accuracy = tf.reduce_sum(hits(labels, probabilities)) / self.config.global_batch_size
        digest = batch_digest.pieces(images, indices, places)
        # Frozen weights are among the others: what the pass leaves alone is neither exchanged nor assigned.
        changed = {
            str(place): value
            for place, (variable, value) in enumerate(zip(self.model.non_trainable_variables, after, strict=True))
            if value is not others[place] and not is_seed(variable)
        }
        return tape.gradient(scaled, trainable), changed, tf.concat([[loss, accuracy], digest], axis=0)

    def update(
        self, gradients: Sequence[Any], changed: dict[str, tf.Tensor], row: tf.Tensor, optimizer: keras.Optimizer
    ) -> tf.Tensor:
        """Add up over the replicas, in one exchange, and take the step.

        The moving averages of batch normalisation become the mean over the replicas in every step: the replicas stay
        equal, and the chief's checkpoint is everybody's.

        Args:
            gradients: from `gradients`.
            changed: from `gradients`.
            row: from `gradients`.
            optimizer: made by `trainer.learner.optimizers.build`, or loss scaling around it.

        Returns:
            The row, added up.
        """
        held = [(self.model.non_trainable_variables[int(place)], value) for place, value in changed.items()]
        averaged = [(variable, value) for variable, value in held if value.dtype.is_floating]
        mean = [tf.cast(value, tf.float32) for _, value in averaged]
        present = [gradient for gradient in gradients if gradient is not None]
        if self.num_replicas > 1:
            context = tf.distribute.get_replica_context()
            summed = context.all_reduce(tf.distribute.ReduceOp.SUM, [*present, *mean, row])
            present, row = summed[: len(present)], summed[-1]
            mean = [value / self.num_replicas for value in summed[len(present) : -1]]
        for variable, value in held:
            if not value.dtype.is_floating:
                variable.assign(value)
        for (variable, _), value in zip(averaged, mean, strict=True):
            variable.assign(tf.cast(value, variable.dtype))
        sums = iter(present)
        everywhere = [None if gradient is None else next(sums) for gradient in gradients]
        optimizer.apply_gradients(zip(everywhere, self.model.trainable_variables, strict=True))
        return row

    def others_at(self, step: tf.Tensor) -> list[tf.Tensor]:
        """Values of the variables that are not trained, those of seed generators replaced by (seed, step, replica)."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        number = (step * self.num_replicas + tf.cast(replica, tf.int64)) * _DRAWS_PER_STEP
        return [
            tf.stack([variable.value[0], tf.cast(number, variable.dtype)]) if is_seed(variable) else variable.value
            for variable in self.model.non_trainable_variables
        ]


def is_seed(variable: keras.Variable) -> bool:
    """Whether a variable is the state of a Keras seed generator: [seed, number of the next draw]."""
    return bool(variable.name == "seed_generator_state")


def hits(labels: tf.Tensor, probabilities: tf.Tensor) -> tf.Tensor:
    """float32 [B]: 1 where the most probable class is the true one."""
    return tf.cast(tf.argmax(probabilities, axis=-1, output_type=labels.dtype) == labels, tf.float32)
