"""Random numbers in a user's own network that a run cannot resume, or that are the same in every step.

The training step takes the states of Keras' seed generators from the step's number. Everything else that draws is found
in the traced forward pass: operations with a state of their own, and draws whose seed depends on no input of the step.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from exact_resume.text import some
from localvertex._base.userinput.errors import UserError

_STATEFUL = re.compile(r"Rng|Stateful(?!PartitionedCall)")
"""Prefix of operations that draw from a variable, for example a tf.random.Generator's."""
_REPLICA = re.compile(r"(?<![^/])replica_\d+/")
_ADVICE = (
    "make a keras.random.SeedGenerator in the layer's __init__ and pass it as seed to the functions of keras.random"
    " (docs/models.md)"
)


def check(model: keras.Model, strategy: tf.distribute.Strategy, name: str, *, exact: bool) -> list[str]:
    """Return what is wrong with the random numbers of the network of that name, one sentence each.

    Raises:
        UserError: Something is wrong, and the run has to be exact.
    """
    # The project's own networks are known to be right, and tracing a large one takes seconds.
    found = remarks(model, strategy) if ":" in name else []
    if found and exact:
        raise UserError(f"model={name!r} does not work with --exact: {'; '.join(found)}")
    return found


def remarks(model: keras.Model, strategy: tf.distribute.Strategy) -> list[str]:
    """Return a sentence for each kind of draw that does not follow from the step; none for Keras' own layers.

    Raises:
        UserError: The network makes a variable while it is traced.
    """
    try:
        found = {(is_stateful, _REPLICA.sub("", name)) for is_stateful, name in _draws(_forward_pass(model, strategy))}
    except ValueError as error:
        if "singleton tf.Variable" not in str(error):
            raise
        raise UserError(
            "the network makes a variable in its call, as keras.random without a seed does on several devices;"
            f" {_ADVICE}"
        ) from error
    stateful, repeated = (sorted(name for is_stateful, name in found if is_stateful == kind) for kind in (True, False))
    sentences = []
    if stateful:
        sentences.append(
            f"the network draws random numbers with {some(stateful, 2)}, whose state is in no checkpoint: a resumed run"
            f" gets other numbers; {_ADVICE}"
        )
    if repeated:
        sentences.append(
            f"the network draws the same random numbers in every step with {some(repeated, 2)}, whose seed does not"
            f" change; {_ADVICE}"
        )
    return sentences


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


def _draws(graph: Any) -> Iterator[tuple[bool, str]]:
    """Return (whether it has a state, name) of each draw that does not follow from the step.

    Inside a function of the graph, such as a loop's body, the function's arguments count as following from it.
    """
    definition = graph.as_graph_def()
    captured = {tensor.op.name for tensor in graph.internal_captures}
    yield from _in_body(definition.node, {tensor.op.name for tensor in graph.inputs} - captured)
    for function in definition.library.function:
        yield from _in_body(function.node_def, {argument.name for argument in function.signature.input_arg})


def _in_body(nodes: Sequence[Any], inputs: set[str]) -> Iterator[tuple[bool, str]]:
    varying = _varying_nodes(nodes, inputs)
    for node in nodes:
        if _is_stateful(node):
            yield True, node.name
        elif (seed := _seed_origin(node)) and seed not in varying:
            # A draw is an operation for its seed and one for its numbers, in a scope that has the draw's name.
            yield False, node.name.rpartition("/")[0] or node.name


def _varying_nodes(nodes: Sequence[Any], inputs: set[str]) -> set[str]:
    """Return the nodes whose values depend on an input, or on a state that moves on by itself."""
    varying = inputs | {node.name for node in nodes if _is_stateful(node)}
    # The network's own variables are inputs, so any other variable that is read is one that no step changes.
    others = [node for node in nodes if node.op != "ReadVariableOp"]
    size = -1
    # Until nothing is added: the nodes of a function may be in any order.
    while size != len(varying):
        size = len(varying)
        varying |= {node.name for node in others if varying.intersection(_data(node))}
    return varying


def _is_stateful(node: Any) -> bool:
    return "seed2" in node.attr or bool(_STATEFUL.match(node.op))


def _seed_origin(node: Any) -> str:
    """Return where the seed of a stateless draw comes from; empty for other operations."""
    operation = getattr(tf.raw_ops, node.op, None)
    # The inputs come first, attributes last.
    names = list(inspect.signature(operation).parameters) if operation else []
    return _data(node)[names.index("seed")] if "seed" in names and "seed" not in node.attr else ""


def _data(node: Any) -> list[str]:
    """Return the nodes and arguments that an operation reads, in order; those it only waits for begin with ^."""
    return [text.split(":")[0] for text in node.input if not text.startswith("^")]
