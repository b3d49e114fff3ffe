"""The update rule and its learning rate over the steps."""

import keras
import tensorflow as tf

from trainer.config import TrainConfig
from trainer.learner import keras_internals


@keras.saving.register_keras_serializable(package="trainer")
class WarmUpThen(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """Linear from zero during the warm-up, then constant or down to zero along half a cosine (arXiv:1608.03983)."""

    def __init__(
        self, peak: float, num_warmup_steps: int, num_steps: int, kind: str, clock: tf.Variable | None = None
    ) -> None:
        # The optimizer's own counter skips steps that overflowed, and loses some with parameter servers.
        self._clock = clock
        self.peak, self.num_warmup_steps, self.num_steps, self.kind = peak, num_warmup_steps, num_steps, kind

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Return the learning rate, float32 scalar, at a step (0 is the first); a clock overrides the step."""
        done = tf.cast(step if self._clock is None else self._clock, tf.float32)
        # A learning rate of zero would waste the first step.
        rise = tf.minimum(1.0, (done + 1.0) / max(1, self.num_warmup_steps))
        if self.kind == "constant":
            return self.peak * rise
        share = (done - self.num_warmup_steps) / max(1, self.num_steps - self.num_warmup_steps)
        return self.peak * rise * 0.5 * (1.0 + tf.cos(3.141592653589793 * tf.clip_by_value(share, 0.0, 1.0)))

    def get_config(self) -> dict[str, float | int | str]:
        """Return the constructor's arguments."""
        return {
            "peak": self.peak,
            "num_warmup_steps": self.num_warmup_steps,
            "num_steps": self.num_steps,
            "kind": self.kind,
        }


def build(config: TrainConfig, num_steps: int, clock: tf.Variable | None = None) -> keras.Optimizer:
    """Make the optimizer of a configuration; call `.build(variables)` inside the distribution strategy's scope.

    Args:
        config: Gives optimizer, learning_rate, learning_rate_schedule and warmup_fraction.
        num_steps: Length of the whole run, where the schedule ends.
        clock: Step counter, int64 scalar; without it the optimizer counts.
    """
    schedule = WarmUpThen(
        config.learning_rate, int(config.warmup_fraction * num_steps), num_steps, config.learning_rate_schedule, clock
    )
    optimizer: keras.Optimizer
    if config.optimizer == "sgd":
        optimizer = keras.optimizers.SGD(schedule, momentum=0.9)
    elif config.optimizer == "rmsprop":
        optimizer = keras.optimizers.RMSprop(schedule)
    else:
        optimizer = keras_internals.FusedAdam(schedule)
    keras_internals.skip_gradient_reduction(optimizer)
    return optimizer
