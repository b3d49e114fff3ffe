"""The update rule and its learning rate over the steps."""

from typing import Any

import keras
import tensorflow as tf

from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import on_one_line
from trainer.config import TrainConfig
from trainer.learner import keras_internals
from trainer.models import recipes


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


_FLAGS: dict[str, dict[str, Any]] = {
    "adam": {"class_name": "Adam", "config": {}},
    "rmsprop": {"class_name": "RMSprop", "config": {}},
    "sgd": {"class_name": "SGD", "config": {"momentum": 0.9}},
}
"""What the flag `--optimizer` means."""
_FUSED: dict[str, dict[str, Any]] = {"Adam": {}, "AdamW": {"weight_decay": 0.004}}
"""Classes that FusedAdam computes, and their defaults."""


def build(config: TrainConfig, num_steps: int, clock: tf.Variable | None = None) -> keras.Optimizer:
    """Make the optimizer of a configuration; call `.build(variables)` inside the distribution strategy's scope.

    Args:
        config: Gives recipe, optimizer, learning_rate, learning_rate_schedule and warmup_fraction.
        num_steps: Length of the whole run, where the schedule ends.
        clock: Step counter, int64 scalar; without it the optimizer counts.

    Raises:
        UserError: Keras refuses values of the recipe.
    """
    recipe = recipes.parse(config.recipe)
    num_warmup_steps = int(config.warmup_fraction * num_steps)
    try:
        rate = (
            _schedule(recipe.schedule, num_steps, clock)
            if recipe.schedule
            else WarmUpThen(
                recipe.learning_rate or config.learning_rate,
                num_warmup_steps,
                num_steps,
                config.learning_rate_schedule,
                clock,
            )
        )
        chosen = recipe.optimizer or _FLAGS[config.optimizer]
        name, options = chosen["class_name"], chosen["config"]
        if name in _FUSED and not options.get("amsgrad"):
            optimizer = keras_internals.FusedAdam(rate, **_FUSED[name] | options)
        else:
            optimizer = getattr(keras.optimizers, name)(rate, **options)
    except ValueError as error:
        raise UserError(f"recipe: {on_one_line(error)}") from error
    # ReplicaStep accumulates: Keras' own way cannot be traced on several devices.
    optimizer.gradient_accumulation_steps = None
    keras_internals.skip_gradient_reduction(optimizer)
    return optimizer


def _schedule(chosen: dict[str, Any], num_steps: int, clock: tf.Variable | None) -> Any:
    """Return a schedule of Keras that goes by the clock, as WarmUpThen does."""
    name, options = chosen["class_name"], chosen["config"]
    rest = max(1, num_steps - options.get("warmup_steps", 0))
    missing = {key: rest for key in recipes.SCHEDULES.config(name) if key.endswith("decay_steps")}
    schedule = getattr(keras.optimizers.schedules, name)(**missing | options)
    return schedule if clock is None else lambda: schedule(tf.convert_to_tensor(clock))
