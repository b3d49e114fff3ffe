"""Random numbers in a user's own network that a run cannot resume.

The training step takes the states of Keras' seed generators from the step's number. Everything else that draws with a
state of its own is found in the traced forward pass.
"""

import re
from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from exact_resume.text import some
from localvertex_base.userinput.errors import UserError

_STATEFUL = re.compile(r"Rng|Stateful(?!PartitionedCall)")
"""Prefix of operations that draw from a variable, for example a tf.random.Generator's."""
_ADVICE = (
    "make a keras.random.SeedGenerator in the layer's __init__ and pass it as seed to the functions of keras.random"
    " (docs/models.md)"
)


def check(model: keras.Model, strategy: tf.distribute.Strategy, name: str, *, exact: bool) -> str:
    """Return what is wrong with the random numbers of the network of that name, in a sentence; empty for nothing.

    Raises:
        UserError: Something is wrong, and the run has to be exact.
    """
    # The project's own networks are known to be right, and tracing a large one takes seconds.
    found = remark(model, strategy) if ":" in name else ""
    if found and exact:
        raise UserError(f"model={name!r} does not work with --exact: {found}")
    return found


def remark(model: keras.Model, strategy: tf.distribute.Strategy) -> str:
    """Return a sentence that names draws with a state; empty if there are none, as in Keras' own layers.

    Raises:
        UserError: The network makes a variable while it is traced.
    """
    try:
        definition = _forward_pass(model, strategy).as_graph_def()
    except ValueError as error:
        if "singleton tf.Variable" not in str(error):
            raise
        raise UserError(
            "the network makes a variable in its call, as keras.random without a seed does on several devices;"
            f" {_ADVICE}"
        ) from error
    bodies = [definition.node, *(function.node_def for function in definition.library.function)]
    names = [node.name for body in bodies for node in body if "seed2" in node.attr or _STATEFUL.match(node.op)]
    if not names:
        return ""
    return (
        f"the network draws random numbers with {some(names, 1)}, whose state is in no checkpoint: a resumed run gets"
        f" other numbers; {_ADVICE}"
    )


def _forward_pass(model: keras.Model, strategy: tf.distribute.Strategy) -> Any:
    """Trace the model as the training step calls it: variables and images are inputs."""

    def forward(*arguments: Any) -> Any:
        return model.stateless_call(*arguments, training=True, return_losses=True)[0]

    def specs(variables: Iterable[keras.Variable]) -> list[tf.TensorSpec]:
        return [tf.TensorSpec(variable.shape, variable.dtype) for variable in variables]

    (images,) = model.inputs
    traced = tf.function(lambda *arguments: strategy.run(forward, args=arguments), autograph=False)
    return traced.get_concrete_function(
        specs(model.trainable_variables),
        specs(model.non_trainable_variables),
        tf.TensorSpec(images.shape, images.dtype),
    ).graph
