"""The update rule and its learning rate over the steps."""

import functools
from typing import Any

import keras
import tensorflow as tf

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line
from trainer.config import TrainConfig
from trainer.learner import keras_internals
from trainer.models import recipes
from trainer.models.recipes import Recipe


def learning_rate(step: tf.Tensor, *, peak: float, num_warmup_steps: int, num_steps: int, kind: str) -> tf.Tensor:
    """Return the learning rate of the flags, float32 scalar, at a step (0 is the first).

    Linear from zero during the warm-up, then constant or down to zero along half a cosine (arXiv:1608.03983).
    """
    done = tf.cast(step, tf.float32)
    # A learning rate of zero would waste the first step.
    rise = tf.minimum(1.0, (done + 1.0) / max(1, num_warmup_steps))
    if kind == "constant":
        return peak * rise
    share = (done - num_warmup_steps) / max(1, num_steps - num_warmup_steps)
    return peak * rise * 0.5 * (1.0 + tf.cos(3.141592653589793 * tf.clip_by_value(share, 0.0, 1.0)))


_FLAGS = {
    "adam": ("Adam", {}),
    "rmsprop": ("RMSprop", {}),
    "sgd": ("SGD", {"momentum": 0.9}),
}
"""Class and config of the values of `--optimizer`."""
_FUSED = {"Adam": {}, "AdamW": {"weight_decay": 0.004}}
"""Classes that FusedAdam computes, with Keras' defaults."""


def build(config: TrainConfig, num_steps: int, clock: tf.Variable | None = None) -> keras.Optimizer:
    """Make the optimizer of a configuration; call `.build(variables)` inside the distribution strategy's scope.

    Args:
        config: Gives recipe, optimizer, learning_rate, learning_rate_schedule and warmup_fraction.
        num_steps: Length of the whole run, where the schedule ends.
        clock: Step counter, int64 scalar; without it the optimizer counts.

    Raises:
        UserError: Keras refuses a value of the recipe.
    """
    recipe = recipes.parse(config.recipe)
    name, options = recipe.optimizer.values() if recipe.optimizer else _FLAGS[config.optimizer]
    make = keras_internals.FusedAdam if name in _FUSED else getattr(keras.optimizers, name)
    try:
        schedule = _schedule(config, recipe, num_steps)
        # The optimizer's own counter skips steps that overflowed, and loses some with parameter servers.
        optimizer: keras.Optimizer = make(
            lambda: schedule(tf.convert_to_tensor(optimizer.iterations if clock is None else clock)),
            **_FUSED.get(name, {}) | options,
        )
    except ValueError as error:
        raise UserError(f"recipe: {on_one_line(error)}") from error
    keras_internals.skip_gradient_reduction(optimizer)
    return optimizer


def _schedule(config: TrainConfig, recipe: Recipe, num_steps: int) -> Any:
    """Return the learning rate as a function of the step."""
    if not recipe.schedule:
        return functools.partial(
            learning_rate,
            peak=recipe.learning_rate or config.learning_rate,
            num_warmup_steps=int(config.warmup_fraction * num_steps),
            num_steps=num_steps,
            kind=config.learning_rate_schedule,
        )
    name, options = recipe.schedule.values()
    boundaries = options.get("boundaries", [1])
    if boundaries != (sorted({*boundaries}) or None):
        raise ValueError(f"PiecewiseConstantDecay.boundaries are {boundaries}; expected ascending steps")
    rest = max(1, num_steps - options.get("warmup_steps", 0))
    ends = {key: rest for key in recipes.SCHEDULES.config(name) if key.endswith("decay_steps")}
    return getattr(keras.optimizers.schedules, name)(**ends | options)
