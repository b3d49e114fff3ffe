"""The optimizers beside Keras' own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainer.config import TrainConfig
from trainer.learner import optimizers
from trainer.learner.optimizers import FusedAdam


def trained(optimizer, gradients, dtype="float32"):
    """Values of two variables and their moments after steps with these gradients, in a graph as in training."""
    variables = [keras.Variable(np.ones((3, 4)), dtype=dtype), keras.Variable(np.zeros(2), dtype=dtype)]
    optimizer.build(variables)

    @tf.function
    def step(first, second):
        optimizer.apply_gradients(zip((first, second), variables, strict=True))

    for pair in gradients:
        step(*pair)
    return [variable.numpy() for variable in (*variables, *optimizer.variables)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_adam_is_keras_adam_over_a_schedule(dtype):
    config = TrainConfig(learning_rate=0.1, learning_rate_schedule="cosine")
    ours, theirs = optimizers.build(config, 30), keras.optimizers.Adam(optimizers.WarmUpThen(0.1, 3, 30, "cosine"))
    assert type(ours) is FusedAdam
    ours.learning_rate = optimizers.WarmUpThen(0.1, 3, 30, "cosine")
    random = np.random.default_rng(0)
    shapes = ((3, 4), (2,))
    gradients = [[tf.constant(random.normal(size=shape), dtype) for shape in shapes] for _ in range(30)]
    for a, b in zip(trained(ours, gradients, dtype), trained(theirs, gradients, dtype), strict=True):
        np.testing.assert_allclose(np.float64(a), np.float64(b), rtol=1e-4, atol=1e-6)


def test_the_gradient_of_an_embedding_is_taken_too():
    tables = []
    for optimizer in (FusedAdam(0.1), keras.optimizers.Adam(0.1)):
        table = keras.Variable(np.ones((5, 2), np.float32))
        optimizer.build([table])
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.gather(table.value, [1, 3, 1]))
            (gradient,) = tape.gradient(loss, [table.value])
            assert isinstance(gradient, tf.IndexedSlices)
            optimizer.apply_gradients([(gradient, table)])
        tables.append(table.numpy())
    np.testing.assert_allclose(*tables, rtol=1e-6)
    assert np.ptp(tables[0]) > 0
