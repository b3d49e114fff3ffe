"""One replica's part of a step: a pure function from variables and images to gradients.

A pure function can be compiled by XLA on any device, and takes dropout's random numbers from the step instead of from a
state.

Legend: B batch of a replica, K classes.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from trainer.config import TrainConfig
from trainer.data.augmentation.basic import AUGMENTATIONS
from trainer.learner import batch_digest
from trainer.learner.keras_internals import is_seed
from trainer.models import recipes

NUM_COUNTS = 3
"""Number of counts per class in `class_counts`."""
_MAX_SEED_USES = 4096
"""Uses of a seed generator per step, by all layers that share it, before two steps would get the same numbers."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplicaStep:
    """Forward and backward pass over a model."""

    model: keras.Model
    config: TrainConfig
    num_replicas: int
    class_weights: Sequence[float] = ()
    """One per class; empty: all examples count the same."""

    def losses(self, labels: tf.Tensor, probabilities: tf.Tensor) -> tf.Tensor:
        """Return the weighted losses float32 [B] of labels int32 [B], or shares float32 [B, K] of mixed images."""
        shares = labels if labels.dtype.is_floating else tf.one_hot(labels, probabilities.shape[-1])
        if chosen := recipes.parse(self.config.recipe).loss:
            losses = getattr(keras.losses, chosen["class_name"])(reduction=None, **chosen["config"])(
                shares, probabilities
            )
        elif labels.dtype.is_floating:
            losses = keras.losses.categorical_crossentropy(shares, probabilities)
        else:
            losses = keras.losses.sparse_categorical_crossentropy(labels, probabilities)
        # Their mean is 1 over the split: to normalise them by batch would give each replica another loss.
        return losses * tf.linalg.matvec(shares, self.class_weights) if self.class_weights else losses

    def gradients(
        self,
        trainable: Sequence[tf.Tensor],
        others: Sequence[tf.Tensor],
        batch: tuple[tf.Tensor, ...],
        loss_scale: tf.Tensor,
    ) -> tuple[list[Any], dict[str, tf.Tensor], tf.Tensor]:
        """Return the gradients of this replica's part of the mean loss.

        Args:
            trainable: Values of the model's trainable variables.
            others: Values of its other variables, from `others_at`.
            batch: Batch of this replica, from `trainer.data.batches.training_batches`.
            loss_scale: Factor of the loss whose gradients are returned, float32 scalar.

        Returns:
            The gradients (None for a variable without); new values of the other variables that the pass changes, by
                their position among them; and float32 [2 + NUM_PIECES] with loss, accuracy and digest, to be summed
                over the replicas.
        """
        images, labels, random_numbers, indices, positions = batch
        recipe = recipes.parse(self.config.recipe)
        # The layers of a recipe changed the images already, on the host, and take the place of the flag.
        images = AUGMENTATIONS["none" if recipe.augmentation else self.config.augment](images, random_numbers)
        with tf.GradientTape() as tape:
            tape.watch(trainable)
            probabilities, after, penalties = self.model.stateless_call(
                trainable, others, images, training=True, return_losses=True
            )
            # Divided by the global batch, so that the sum over the replicas is the mean over all examples.
            loss = tf.reduce_sum(self.losses(labels, probabilities)) / self.config.global_batch_size
            if penalties:
                loss += tf.cast(tf.add_n(penalties), tf.float32) / self.num_replicas
            scaled = loss * loss_scale
        if labels.dtype.is_floating:
            labels = tf.argmax(labels, axis=-1, output_type=tf.int32)
        accuracy = tf.reduce_sum(hits(labels, probabilities)) / self.config.global_batch_size
        digest = batch_digest.pieces(images, indices, positions)
        # The others include frozen weights: what the pass does not change is neither exchanged nor assigned.
        changed = {
            str(position): value
            for position, (variable, value) in enumerate(zip(self.model.non_trainable_variables, after, strict=True))
            if value is not others[position] and not is_seed(variable)
        }
        return tape.gradient(scaled, trainable), changed, tf.concat([[loss, accuracy], digest], axis=0)

    def update(
        self, gradients: Sequence[Any], changed: dict[str, tf.Tensor], row: tf.Tensor, optimizer: keras.Optimizer
    ) -> tf.Tensor:
        """Sum over the replicas, in one exchange, and update the variables.

        The moving averages of batch normalisation become the mean over the replicas in every step. So the replicas stay
        equal, and the chief's checkpoint is valid for all of them.

        Args:
            gradients: From `gradients`.
            changed: From `gradients`.
            row: From `gradients`.
            optimizer: From `trainer.learner.optimizers.build`, possibly inside loss scaling.

        Returns:
            The row, summed over the replicas.
        """
        held = [(self.model.non_trainable_variables[int(position)], value) for position, value in changed.items()]
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
        """Return the values of the other variables; the states of seed generators follow from (seed, step, replica)."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        number = (step * self.num_replicas + tf.cast(replica, tf.int64)) * _MAX_SEED_USES
        return [
            tf.stack([variable.value[0], tf.cast(number, variable.dtype)]) if is_seed(variable) else variable.value
            for variable in self.model.non_trainable_variables
        ]


def hits(labels: tf.Tensor, probabilities: tf.Tensor) -> tf.Tensor:
    """Return float32 [B]: 1 where the most probable class is the true one, else 0."""
    return tf.cast(tf.argmax(probabilities, axis=-1, output_type=labels.dtype) == labels, tf.float32)


def class_counts(labels: tf.Tensor, probabilities: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Return float32 [NUM_COUNTS * K]: correct predictions, examples and predictions per class.

    Every metric can be computed from these counts.

    Args:
        labels: True classes [B].
        probabilities: Values [B, K].
        weights: 1 for an example and 0 for padding, float32 [B].
    """
    num_classes = probabilities.shape[-1]
    answers = tf.argmax(probabilities, axis=-1, output_type=labels.dtype)
    # One-hot rows, because counting by index is not deterministic on GPUs.
    is_true = tf.one_hot(labels, num_classes) * weights[:, None]
    is_answer = tf.one_hot(answers, num_classes) * weights[:, None]
    return tf.reshape(tf.reduce_sum(tf.stack([is_true * is_answer, is_true, is_answer]), axis=1), [-1])
