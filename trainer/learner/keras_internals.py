"""Everything that depends on private parts of Keras, made for one version of it.

Each function and class names what it relies on; tests/trainer/learner/test_keras_internals.py compares that with the
installed Keras. `check_version` refuses any other version.
"""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from localvertex._base.userinput.errors import UserError

MADE_FOR = "3.15"
"""Version of Keras whose private parts are used here; pyproject.toml pins the same."""
_SEED_STATE = "seed_generator_state"
"""Name that Keras gives the state variable of a seed generator."""
_SMALLEST_EPSILON = 1.001e-5
"""Smallest epsilon that cuDNN accepts (CUDNN_BN_MIN_EPSILON)."""


def check_version(installed: str = keras.__version__) -> None:
    """Refuse a Keras whose private parts may differ.

    Raises:
        UserError: Another version is installed.
    """
    if installed.split(".")[:2] != MADE_FOR.split("."):
        raise UserError(
            f"Keras {installed} is installed, but the trainer is made for Keras {MADE_FOR}, whose internals it uses;"
            f" install keras=={MADE_FOR}.*"
        )


class FusedBatchNormalization(keras.layers.BatchNormalization):  # type: ignore[misc]
    """Batch normalisation of float [B, H, W, C] over all but C, as one operation while training.

    Keras 3 composes it of a dozen operations that each read all the pixels. The mathematics are the same, in another
    order of the sums; `benchmarks/train.py` measures the gain on a CPU. On a GPU it is cuDNN's operation, which is
    deterministic on request.
    """

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Return the inputs normalised by the batch's own statistics, and update the moving averages."""
        if not (training and self.trainable) or mask is not None or not _is_image_batch(self, inputs):
            return super().call(inputs, training=training, mask=mask)
        channels = inputs.shape[-1]
        nothing = tf.zeros([0])
        outputs, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=inputs,
            scale=tf.cast(self.gamma, tf.float32) if self.scale else tf.ones([channels]),
            offset=tf.cast(self.beta, tf.float32) if self.center else tf.zeros([channels]),
            mean=nothing,
            variance=nothing,
            epsilon=self.epsilon,
            is_training=True,
        )
        # The operation returns the unbiased estimate, Keras 3 keeps the variance of the batch itself.
        count = tf.cast(tf.size(inputs, out_type=tf.int64) // channels, tf.float32)
        variance *= (count - 1.0) / count
        for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            average.assign(average * self.momentum + value * (1.0 - self.momentum))
        return outputs


def _is_image_batch(layer: keras.layers.BatchNormalization, inputs: Any) -> bool:
    return len(inputs.shape) == 4 and layer.axis in (-1, 3) and inputs.dtype.name in ("float32", "float16", "bfloat16")


def fuse_batch_normalization(model: keras.Model) -> None:
    """Make the batch normalisation layers of a model, including nested ones, use the fused operation while training.

    Other layers stay as they are: subclasses of Keras' layer, synchronised and renormalising ones, and those whose
    averages have 16 bits.

    Relies on: `Model._flatten_layers` lists nested layers; a layer's class can be replaced.
    """
    for layer in model._flatten_layers():
        is_plain = type(layer) is keras.layers.BatchNormalization and not layer.synchronized and not layer.renorm
        if is_plain and layer.epsilon >= _SMALLEST_EPSILON and layer.variable_dtype == "float32":
            # Instead of copying the model: the user's layers keep their weights, names and connections.
            object.__setattr__(layer, "__class__", FusedBatchNormalization)


@keras.saving.register_keras_serializable(package="trainer")
class FusedAdam(keras.optimizers.Adam):  # type: ignore[misc]
    """Keras' Adam with one operation per variable instead of twenty: fewer kernels to launch, half the tracing time.

    Relies on: `_backend_update_step` passes its learning rate on to `update_step` unchanged, even a tuple; the moments
    are in `_momentums` and `_velocities`, at the place that `_get_variable_index` returns.
    """

    def _backend_update_step(
        self, grads: Sequence[Any], trainable_variables: Sequence[Any], learning_rate: Any
    ) -> None:
        # Equal for all variables, so computed once and passed on packed with the learning rate.
        step = tf.cast(self.iterations + 1, tf.float32)
        powers = (tf.pow(self.beta_1, step), tf.pow(self.beta_2, step))
        super()._backend_update_step(grads, trainable_variables, (tf.cast(learning_rate, tf.float32), *powers))

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update a variable and its two moments, as in algorithm 1 of arXiv:1412.6980 with its efficient order."""
        rate, *powers = learning_rate
        if isinstance(gradient, tf.IndexedSlices) or variable.dtype != tf.float32:
            # The operation does not take the gradient of an embedding, and with 16 bits its 1 - beta_2 would be zero.
            super().update_step(gradient, variable, rate)
            return
        index = self._get_variable_index(variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=tf.cast(gradient, tf.float32),
        )


def skip_gradient_reduction(optimizer: keras.Optimizer) -> None:
    """Make an optimizer take gradients that are already summed over the replicas.

    The training step sums them together with everything else that the replicas exchange.

    Relies on: `_all_reduce_sum_gradients` is called with the pairs of gradient and variable; Keras 3 has no public way.
    """
    optimizer._all_reduce_sum_gradients = list


def scale_learning_rate(optimizer: keras.Optimizer, variables: Sequence[keras.Variable], factor: float) -> None:
    """Multiply the learning rate of some variables, and do not decay them.

    Relies on: as FusedAdam; `_use_weight_decay` returns which variables are not excluded from the decay.
    """
    optimizer.exclude_from_weight_decay(variables)
    update_step = optimizer.update_step

    def scaled(gradient: Any, variable: Any, learning_rate: Any) -> None:
        rate, *others = tf.nest.flatten(learning_rate)
        rate *= 1.0 if optimizer._use_weight_decay(variable) else factor
        update_step(gradient, variable, (rate, *others) if others else rate)

    optimizer.update_step = scaled


def moving_averages(optimizer: keras.Optimizer) -> list[keras.Variable]:
    """Return the averages (EMA) of the variables that an optimizer was built for, in their order; empty without.

    Relies on: their name.
    """
    return getattr(optimizer, "_model_variables_moving_average", [])


def is_seed(variable: keras.Variable) -> bool:
    """Return whether a variable is the state of a seed generator: uint32 [2], seed and number of the next use.

    Relies on: the name and the layout of that state.
    """
    return bool(variable.name == _SEED_STATE)
