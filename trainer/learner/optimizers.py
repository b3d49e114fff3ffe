"""The update rule and its learning rate over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from trainer.config import TrainConfig


@keras.saving.register_keras_serializable(package="trainer")
class WarmUpThen(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """Linear from zero in the warm-up, then constant or down to zero along half a cosine (arXiv:1608.03983)."""

    def __init__(
        self, peak: float, num_warmup_steps: int, num_steps: int, kind: str, clock: tf.Variable | None = None
    ) -> None:
        # The optimizer's own count leaves out steps that overflowed, and loses some with parameter servers.
        self._clock = clock
        self.peak, self.num_warmup_steps, self.num_steps, self.kind = peak, num_warmup_steps, num_steps, kind

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Learning rate, float32 scalar, at a step (0 is the first); with a clock, at its step."""
        done = tf.cast(step if self._clock is None else self._clock, tf.float32)
        # The first step already moves: a learning rate of zero would waste it.
        rise = tf.minimum(1.0, (done + 1.0) / max(1, self.num_warmup_steps))
        if self.kind == "constant":
            return self.peak * rise
        share = (done - self.num_warmup_steps) / max(1, self.num_steps - self.num_warmup_steps)
        return self.peak * rise * 0.5 * (1.0 + tf.cos(3.141592653589793 * tf.clip_by_value(share, 0.0, 1.0)))

    def get_config(self) -> dict[str, float | int | str]:
        """The arguments."""
        return {
            "peak": self.peak,
            "num_warmup_steps": self.num_warmup_steps,
            "num_steps": self.num_steps,
            "kind": self.kind,
        }


@keras.saving.register_keras_serializable(package="trainer")
class FusedAdam(keras.optimizers.Adam):  # type: ignore[misc]
    """Keras' Adam with one operation a variable instead of twenty: fewer kernels to launch, and half the tracing."""

    def _backend_update_step(
        self, grads: Sequence[Any], trainable_variables: Sequence[Any], learning_rate: Any
    ) -> None:
        # The same for all variables, so computed once; handed on in the place of the learning rate.
        step = tf.cast(self.iterations + 1, tf.float32)
        powers = (tf.pow(self.beta_1, step), tf.pow(self.beta_2, step))
        super()._backend_update_step(grads, trainable_variables, (tf.cast(learning_rate, tf.float32), *powers))

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update a variable and its two moments, as in algorithm 1 of arXiv:1412.6980 with its efficient order."""
        rate, *powers = learning_rate
        if isinstance(gradient, tf.IndexedSlices) or variable.dtype != tf.float32:
            # There is no operation for the gradient of an embedding; and in 16 bits its 1 - beta_2 would be zero.
            super().update_step(gradient, variable, rate)
            return
        index = self._get_variable_index(variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle, m=self._momentums[index].value.handle, v=self._velocities[index].value.handle,
            beta1_power=powers[0], beta2_power=powers[1], lr=rate, beta1=self.beta_1, beta2=self.beta_2,
            epsilon=self.epsilon, grad=tf.cast(gradient, tf.float32),
        )  # fmt: skip


def build(config: TrainConfig, num_steps: int, clock: tf.Variable | None = None) -> keras.Optimizer:
    """The optimizer of a configuration; call `.build(variables)` inside the distribution strategy's scope.

    Args:
        config: optimizer, learning_rate, learning_rate_schedule, warmup_fraction.
        num_steps: length of the whole run; the schedule ends there.
        clock: counts the steps, int64 scalar; without it the optimizer does.
    """
    schedule = WarmUpThen(
        config.learning_rate, int(config.warmup_fraction * num_steps), num_steps, config.learning_rate_schedule, clock
    )
    made: keras.Optimizer
    if config.optimizer == "sgd":
        made = keras.optimizers.SGD(schedule, momentum=0.9)
    elif config.optimizer == "rmsprop":
        made = keras.optimizers.RMSprop(schedule)
    else:
        made = FusedAdam(schedule)
    # The step adds the gradients up over the replicas itself, together with all else that has to be exchanged
    # (trainer.learner.replica_step). Keras 3 has no public way to say so; tests/e2e/test_resume.py would notice.
    made._all_reduce_sum_gradients = list
    return made
