"""Model, optimizer and step under a distribution strategy: trains many steps per graph call, and evaluates.

Legend: R replicas (devices) of all workers together.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from exact_resume.checkpoints.checkpoints import Checkpoint
from exact_resume.loop import Block
from trainer.checkpoints import variables
from trainer.config import TrainConfig
from trainer.data.augmentation.layers import Augmentation
from trainer.data.batches import Shard, evaluation_batches, evaluation_rounds, training_batches
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner import batch_digest, distribution, keras_internals, optimizers, precision, replica_step
from trainer.learner.replica_step import ReplicaStep
from trainer.models import applications, models, recipes
from trainer.models.metrics import ACCURACY, METRICS

EVALUATION_BATCH_SIZE = 256
Parts = Callable[[int], Iterable[Block]]
"""Divides a number of rounds into calls."""


def in_one_part(num_rounds: int) -> list[Block]:
    """Do all rounds in one call."""
    return [Block(first_step=0, num_steps=num_rounds)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """Loss and accuracy of the model on a number of examples."""

    loss: float
    """Mean cross-entropy in nats."""
    accuracy: float
    """Share of examples whose most probable class is the true one, 0 to 1."""
    metric: str = ACCURACY
    score: float | None = None
    """Value of the metric; None if the metric is accuracy."""

    def fields(self) -> dict[str, Any]:
        """Return the fields of the event `evaluate`."""
        own = {} if self.score is None else {"metric": self.metric, "score": self.score}
        return {"loss": self.loss, "accuracy": self.accuracy, **own}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Steps:
    """Results of a graph call; one entry per step."""

    losses: npt.NDArray[np.float32]
    """float32 [step]: mean cross-entropy of the global batch, plus the model's penalties if it has any."""
    accuracies: npt.NDArray[np.float32]
    """float32 [step]: accuracy on the global batch, 0 to 1."""
    digests: npt.NDArray[np.uint64]
    """uint64 [step]: digests of the global batches, from `trainer.learner.batch_digest`."""


class Learner:
    """Everything that changes while training, created inside the distribution strategy's scope."""

    def __init__(
        self,
        config: TrainConfig,
        distribution_strategy: tf.distribute.Strategy,
        *,
        image_size: int,
        num_classes: int,
        num_steps: int,
        dtype: str = "float32",
        class_weights: Sequence[float] = (),
    ) -> None:
        """Build the model with its starting weights.

        `dtype` is from `trainer.learner.precision.choose`, `class_weights` from `Recipe.weights_of`.

        Raises:
            UserError: The weights are not available, the images do not fit the model, or Keras has another version.
        """
        keras_internals.check_version()
        self.config = config
        recipe = recipes.parse(config.recipe)
        self.augmentation = Augmentation(recipe.augmentation, image_size=image_size, num_classes=num_classes)
        self._num_counts = 0 if config.metric == ACCURACY else replica_step.NUM_COUNTS * num_classes
        self.distribution_strategy = distribution_strategy
        self.num_replicas = distribution_strategy.num_replicas_in_sync
        recipe.check_devices(self.num_replicas)
        self._num_steps = num_steps
        self._dtype = dtype
        self._fine_tuning = recipe.fine_tuning
        self.fine_tuning_step = int(recipe.fine_tuning["start"] * num_steps) if recipe.fine_tuning else 0
        # Whole groups of accumulated gradients: the second phase has an optimizer of its own.
        self.fine_tuning_step -= self.fine_tuning_step % recipe.num_accumulated
        """Number of steps of the first phase, which trains the head alone; 0: there is one phase."""
        # Keras' own seed decides the initial weights.
        keras.utils.set_random_seed(config.seed)
        with distribution_strategy.scope():
            self._step = tf.Variable(
                0, dtype=tf.int64, trainable=False, name="step", aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
            )
            with precision.policy(dtype):
                self.model = models.build(
                    config.model,
                    image_size=image_size,
                    num_classes=num_classes,
                    weights=config.weights,
                    trainable=config.trainable,
                )
            keras_internals.fuse_batch_normalization(self.model)
        self.replica_step = ReplicaStep(
            model=self.model, config=config, num_replicas=self.num_replicas, class_weights=class_weights
        )
        self._evaluated: Examples | None = None
        self._begin_phase()
        self.use_xla(False)

    def _begin_phase(self) -> None:
        """Train the variables that are trainable now, with an optimizer of their own.

        So Adam's bias correction counts the steps since its zeros, and a frozen base has neither gradients nor momenta.
        """
        with self.distribution_strategy.scope():
            self.optimizer = optimizers.build(self.config, self._num_steps, self._step)
            self._update = self.optimizer
            if self._dtype == "float16":
                self._update = keras.optimizers.LossScaleOptimizer(self.optimizer)
            # Before tracing, because variables made in a traced function would be placeholders (keras#23085).
            self._weights = self.model.trainable_variables
            # On its own, because inside of loss scaling Keras does not list Nadam's product of momenta.
            self.optimizer.build(self._weights)
            self._update.build(self._weights)

    def fine_tune(self, step: int) -> bool:
        """Begin the second phase if this step belongs to it (0 is the first), and return whether it began."""
        if not self._fine_tuning or step < self.fine_tuning_step:
            return False
        of_base = applications.train_base(self.model, self._fine_tuning.get("layers", 0))
        self._begin_phase()
        keras_internals.scale_learning_rate(
            self.optimizer, of_base, self._fine_tuning.get("learning_rate_multiplier", 1.0)
        )
        self._fine_tuning = None
        self._trace()
        return True

    @property
    def step(self) -> int:
        """Number of steps done, which only grows. The optimizer's variables are of the phase of the last one."""
        return int(self._step.numpy())

    @step.setter
    def step(self, value: int) -> None:
        self._step.assign(value)
        self.fine_tune(value - 1)

    def variables(self) -> list[keras.Variable]:
        """Return every variable that the next step depends on, in a fixed order.

        They are listed one by one because tf.train.Checkpoint(model=, optimizer=) silently omits the state of Keras'
        seed generators (dropout). The state of loss scaling is not included: a run may resume on a device without it.

        Moving averages (EMA) and the weights that they are of change places: who reads the model's variables of a
        checkpoint, to export or to evaluate them, gets the averages.
        """
        averages = keras_internals.moving_averages(self.optimizer)
        other = dict(zip(map(id, self._weights + averages), averages + self._weights, strict=False))
        listed = [*self.model.variables, *self.optimizer.variables]
        return [other.get(id(variable), variable) for variable in listed]

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint.

        Raises:
            UserError: Other code wrote it.
        """
        # First, because it decides which variables there are.
        self.step = checkpoint.step
        variables.assign(self.variables(), checkpoint.arrays)
        self.refresh()
        self.set_loss_scaling(checkpoint.extra["loss_scaling"])

    def refresh(self) -> None:
        """Recompute what the model's layers derive from its variables, after values were assigned to these."""
        applications.refresh(self.model)

    def loss_scaling(self) -> dict[str, float]:
        """Return the state of the loss scaling of float16; empty in other precisions."""
        if self._update is self.optimizer:
            return {}
        state = {"scale": self._update.dynamic_scale, "steps": self._update.step_counter}
        return {name: float(tf.convert_to_tensor(variable.value)) for name, variable in state.items()}

    def set_loss_scaling(self, state: dict[str, float]) -> None:
        """Continue with a state from `loss_scaling`; do nothing if this or the former device needs no scaling."""
        if state and self._update is not self.optimizer:
            self._update.dynamic_scale.assign(state["scale"])
            self._update.step_counter.assign(int(state["steps"]))

    def use_xla(self, on: bool) -> None:
        """Compile forward and backward pass of each replica with XLA from the next call on, or stop doing so."""
        compute = self.replica_step.gradients
        self._gradients = tf.function(compute, jit_compile=True, autograph=False) if on else compute
        self._trace()

    def _trace(self) -> None:
        """Retrace the functions at their next calls."""
        # Nothing here is converted by AutoGraph: that would take a second of the start-up, and files in /tmp.
        self._train = tf.function(self._train_steps, reduce_retracing=True, autograph=False)
        self._evaluate = tf.function(self._evaluate_rounds, reduce_retracing=True, autograph=False)

    def batches(self, examples: Examples, sampler: Sampler, stop_step: int) -> Any:
        """Return an iterator over the batches from the present step on, distributed to the replicas."""
        start_step = self.step
        return iter(
            self._distribute(
                lambda shard: training_batches(
                    examples, sampler, self.augmentation, start_step=start_step, stop_step=stop_step, shard=shard
                )
            )
        )

    def train(self, iterator: Any, num_steps: int) -> Steps:
        """Train a number of steps in one graph call; the host waits for the device once."""
        rows = self._train(iterator, tf.constant(num_steps)).numpy()
        return Steps(losses=rows[:, 0], accuracies=rows[:, 1], digests=batch_digest.join(rows[:, 2:]))

    def _train_steps(self, iterator: Any, num_steps: tf.Tensor) -> tf.Tensor:
        def take() -> tf.Tensor:
            row = self.distribution_strategy.run(self._train_replica, args=(next(iterator), self._step.read_value()))
            self._step.assign_add(1)
            # The same on every replica.
            return self.distribution_strategy.experimental_local_results(row)[0]

        return _repeat(take, num_steps, row_size=2 + batch_digest.NUM_PIECES)

    def _train_replica(self, batch: tuple[tf.Tensor, ...], step: tf.Tensor) -> tf.Tensor:
        variables = self.model.trainable_variables
        scaled = self._update is not self.optimizer
        gradients, changed, row = self._gradients(
            [variable.value for variable in variables],
            self.replica_step.others_at(step),
            batch,
            self._update.dynamic_scale.value if scaled else tf.constant(1.0),
        )
        return self.replica_step.update(gradients, changed, row, self._update)

    def evaluate(self, examples: Examples, parts: Parts = in_one_part) -> Score:
        """Compute loss and accuracy over a whole split, with the moving averages (EMA) if there are any.

        Args:
            examples: The split.
            parts: Divides the rounds (one batch per replica) into graph calls, the same ones on all workers.
        """
        batch_size = min(EVALUATION_BATCH_SIZE, -(-examples.num_examples // self.num_replicas))
        num_rounds = evaluation_rounds(examples, batch_size, self.num_replicas)
        if self._evaluated is not examples:
            # Made once, because that takes longer than a small validation.
            self._evaluation = iter(
                self._distribute(lambda shard: evaluation_batches(examples, batch_size, shard).repeat())
            )
        # An evaluation that does not reach its end leaves the iterator inside the split.
        self._evaluated = None
        rows = [self._evaluate(self._evaluation, tf.constant(part.num_steps)).numpy() for part in parts(num_rounds)]
        self._evaluated = examples
        # Summed here, in double precision, so that the sum does not depend on the number of rounds per call.
        loss, num_hits, *counts = np.concatenate(rows).sum(axis=0, dtype=np.float64).tolist()
        return Score(
            loss=loss / examples.num_examples,
            accuracy=num_hits / examples.num_examples,
            metric=self.config.metric,
            score=float(METRICS[self.config.metric](*np.array(counts, np.int64).reshape(replica_step.NUM_COUNTS, -1)))
            if counts
            else None,
        )

    def _evaluate_rounds(self, iterator: Any, num_rounds: tf.Tensor) -> tf.Tensor:
        def take() -> tf.Tensor:
            row = self.distribution_strategy.run(self._evaluate_replica, args=(next(iterator),))
            return self.distribution_strategy.reduce("SUM", row, axis=None)

        return _repeat(take, num_rounds, row_size=2 + self._num_counts)

    def _evaluate_replica(self, batch: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        images, labels, weights = batch
        if averages := keras_internals.moving_averages(self.optimizer):
            others = [variable.value for variable in self.model.non_trainable_variables]
            probabilities = self.model.stateless_call(averages, others, images, training=False)[0]
        else:
            probabilities = self.model(images, training=False)
        losses = keras.losses.sparse_categorical_crossentropy(labels, probabilities)
        hits = replica_step.hits(labels, probabilities) * weights
        row = tf.stack([tf.reduce_sum(losses * weights), tf.reduce_sum(hits)])
        if not self._num_counts:
            return row
        # Exact: a round has far fewer than 2^24 examples, and the rounds are summed in double precision.
        return tf.concat([row, replica_step.class_counts(labels, probabilities, weights)], axis=0)

    def _distribute(self, dataset: Callable[[Shard], tf.data.Dataset]) -> Any:
        """Return a dataset of the batches of this machine's replicas."""
        own = distribution.own_replicas(self.distribution_strategy)
        if len(own) == 1 and (self.num_replicas == 1 or not distribution.has_gpu()):
            # TensorFlow's distributed iterator is for copies to devices, and takes three times as long per batch.
            return dataset(Shard(pipeline=own[0], num_pipelines=self.num_replicas))

        def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
            shard = Shard(
                pipeline=context.input_pipeline_id,
                num_pipelines=context.num_input_pipelines,
                replicas_per_pipeline=self.num_replicas // context.num_input_pipelines,
            )
            # With a dataset that ends, the workers would synchronise before each batch to find out which has one left.
            return dataset(shard).repeat()

        return self.distribution_strategy.distribute_datasets_from_function(pipeline)


def _repeat(take: Callable[[], tf.Tensor], count: tf.Tensor, *, row_size: int) -> tf.Tensor:
    """Return the rows float32 [count, row_size] that `count` calls return, as a loop in the graph.

    The count is a tensor, so that another count is not traced again.
    """

    def write(number: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        return number + 1, rows.write(number, take())

    rows = tf.TensorArray(tf.float32, size=count, element_shape=(row_size,))
    rows = tf.while_loop(lambda number, _: number < count, write, (tf.constant(0), rows), maximum_iterations=count)[1]
    return rows.stack()
