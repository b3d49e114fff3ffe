"""Every assumption about private parts of Keras, compared with the installed version, and what is built on them."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from localvertex._base.userinput.errors import UserError
from trainer.config import TrainConfig
from trainer.learner import keras_internals, optimizers
from trainer.learner.keras_internals import FusedAdam, FusedBatchNormalization, fuse_batch_normalization

HELP = (
    f"trainer/learner/keras_internals.py is made for Keras {keras_internals.MADE_FOR}, and Keras {keras.__version__}"
    " differs; adapt that file, then update MADE_FOR and the pin in pyproject.toml. The difference: "
)


def test_another_keras_is_refused_and_the_pin_names_the_same_one(repository: Path) -> None:
    keras_internals.check_version()
    with pytest.raises(UserError, match=r"Keras 3\.99\.0 is installed, but .* install keras==") as refused:
        keras_internals.check_version("3.99.0")
    assert "\n" not in str(refused.value)
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    major, minor = keras_internals.MADE_FOR.split(".")
    pin = f"keras>={major}.{minor},<{major}.{int(minor) + 1}"
    assert pin in project["optional-dependencies"]["trainer-base"]


def test_a_model_lists_the_layers_inside_its_layers() -> None:
    inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model = keras.Sequential([keras.Input((4,)), inner])
    assert hasattr(model, "_flatten_layers"), HELP + "keras.Model has no _flatten_layers"
    assert inner.layers[0] in list(model._flatten_layers()), HELP + "_flatten_layers does not list nested layers"


def test_the_class_of_a_layer_can_be_replaced() -> None:
    layer = keras.layers.BatchNormalization()
    object.__setattr__(layer, "__class__", FusedBatchNormalization)
    assert isinstance(layer, FusedBatchNormalization), HELP + "a layer's __class__ cannot be replaced"
    missing = [name for name in ("synchronized", "renorm", "variable_dtype") if not hasattr(layer, name)]
    assert missing == [], HELP + f"BatchNormalization has no {missing}"


def test_adam_passes_a_packed_learning_rate_on_and_has_its_moments_by_index() -> None:
    received = []

    class Recording(keras.optimizers.Adam):  # type: ignore[misc]
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            received.append((variable, learning_rate))

    optimizer = Recording(0.1)
    variables = [keras.Variable(np.ones(2)), keras.Variable(np.ones(3))]
    optimizer.build(variables)
    assert hasattr(optimizer, "_backend_update_step"), HELP + "optimizers have no _backend_update_step"
    packed = (tf.constant(0.1), tf.constant(0.9), tf.constant(0.999))
    optimizer._backend_update_step([tf.ones(2), tf.ones(3)], variables, packed)
    assert [rate for _, rate in received] == [packed, packed], HELP + "the learning rate is changed on its way"
    for position, variable in enumerate(variables):
        assert optimizer._get_variable_index(variable) == position, HELP + "_get_variable_index counts differently"
        for moments in (optimizer._momentums, optimizer._velocities):
            assert moments[position].shape == variable.shape, HELP + "Adam's moments are in another order"


def test_variables_are_excluded_from_weight_decay_and_known_by_it() -> None:
    variables = [keras.Variable(np.ones(2, np.float32)) for _ in range(2)]
    optimizer = keras.optimizers.SGD(1.0, weight_decay=0.5)
    optimizer.build(variables)
    optimizer.exclude_from_weight_decay(variables[:1])
    assert hasattr(optimizer, "_use_weight_decay"), HELP + "optimizers have no _use_weight_decay"
    found = [optimizer._use_weight_decay(variable.value) for variable in variables]
    assert found == [False, True], HELP + "_use_weight_decay does not know the excluded variables"


def test_the_sum_over_replicas_can_be_replaced() -> None:
    summed = []

    def all_reduce(pairs: Sequence[Any]) -> list[Any]:
        summed.extend(pairs)
        return list(pairs)

    optimizer = keras.optimizers.SGD(1.0)
    variable = keras.Variable(np.zeros(2, np.float32))
    optimizer.build([variable])
    assert hasattr(optimizer, "_all_reduce_sum_gradients"), HELP + "optimizers have no _all_reduce_sum_gradients"
    optimizer._all_reduce_sum_gradients = all_reduce
    optimizer.apply_gradients([(tf.ones(2), variable)])
    assert len(summed) == 1, HELP + "_all_reduce_sum_gradients is not called with the pairs"
    np.testing.assert_array_equal(variable.numpy(), [-1, -1])


def test_the_state_of_a_seed_generator_is_known_by_its_name_and_layout() -> None:
    generator = keras.random.SeedGenerator(7)
    assert keras_internals.is_seed(generator.state), HELP + f"its state is called {generator.state.name!r}"
    before = generator.state.numpy()
    generator.next()
    after = generator.state.numpy()
    assert before.tolist() == [7, 0], HELP + "the state is not (seed, number of the next use)"
    assert after.tolist() == [7, 1], HELP + "a use does not count up the second number"
    dropout = keras.layers.Dropout(0.5)
    assert any(keras_internals.is_seed(variable) for variable in dropout.variables), HELP + "dropout has no such state"


def layer_pair(**options: Any) -> list[keras.layers.BatchNormalization]:
    """Two equal layers, the first as Keras has it, the second fused."""
    pair = [keras.layers.BatchNormalization(gamma_initializer="random_normal", **options) for _ in range(2)]
    models = [keras.Sequential([keras.Input((6, 5, 4)), layer]) for layer in pair]
    models[1].set_weights(models[0].get_weights())
    fuse_batch_normalization(models[1])
    return pair


def pass_through(layer: keras.layers.BatchNormalization, images: tf.Tensor, weights: tf.Tensor) -> list[Any]:
    with tf.GradientTape() as tape:
        tape.watch(images)
        outputs = layer(images, training=True)
        loss = tf.reduce_sum(tf.cast(outputs, tf.float32) * weights)
    values = [v.value for v in layer.trainable_variables]
    return [outputs, *tape.gradient(loss, [images, *values]), layer.moving_mean.value, layer.moving_variance.value]


@pytest.mark.parametrize("options", [{}, {"momentum": 0.5, "epsilon": 0.1}, {"scale": False}, {"center": False}])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_outputs_gradients_and_averages_are_those_of_keras(options: dict[str, Any], batch_size: int) -> None:
    random = np.random.default_rng(0)
    images = tf.constant(random.normal(3, 2, (batch_size, 6, 5, 4)), tf.float32)
    weights = tf.constant(random.normal(size=images.shape), tf.float32)
    plain, fused = layer_pair(**options)
    assert type(fused) is FusedBatchNormalization
    for _ in range(2):
        pairs = zip(pass_through(plain, images, weights), pass_through(fused, images, weights), strict=True)
        for expected, found in pairs:
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(plain(images, training=False), fused(images, training=False), rtol=1e-4, atol=1e-5)


def test_a_frozen_layer_uses_its_averages() -> None:
    plain, fused = layer_pair()
    plain.trainable = fused.trainable = False
    images = tf.ones((2, 6, 5, 4))
    np.testing.assert_array_equal(plain(images, training=True), fused(images, training=True))
    assert np.all(fused.moving_mean.numpy() == 0)


@pytest.mark.parametrize(
    "options", [{"synchronized": True}, {"renorm": True}, {"epsilon": 1e-6}, {"dtype": "bfloat16"}]
)
def test_layers_that_the_operation_does_not_support_stay_as_they_are(options: dict[str, Any]) -> None:
    assert type(layer_pair(**options)[1]) is keras.layers.BatchNormalization


def test_nested_layers_are_fused_and_half_precision_keeps_the_averages_in_float32() -> None:
    normalization = keras.layers.BatchNormalization(dtype="mixed_bfloat16")
    inner = keras.Sequential([keras.Input((6, 5, 4)), normalization])
    model = keras.Sequential([keras.Input((6, 5, 4)), inner])
    fuse_batch_normalization(model)
    (layer,) = inner.layers
    assert type(layer) is FusedBatchNormalization
    images = np.random.default_rng(0).normal(3, 2, (64, 6, 5, 4)).astype(np.float32)
    assert model(images, training=True).dtype == tf.bfloat16
    assert layer.moving_mean.dtype == "float32"
    np.testing.assert_allclose(layer.moving_mean.numpy(), images.mean((0, 1, 2)) * 0.01, rtol=0.01)


def trained(optimizer: keras.Optimizer, gradients: Sequence[Sequence[tf.Tensor]], dtype: str) -> list[Any]:
    """Return two variables and their moments after steps with these gradients, in a graph as in training."""
    variables = [keras.Variable(np.ones((3, 4)), dtype=dtype), keras.Variable(np.zeros(2), dtype=dtype)]
    optimizer.build(variables)

    @tf.function
    def step(first: tf.Tensor, second: tf.Tensor) -> None:
        optimizer.apply_gradients(zip((first, second), variables, strict=True))

    for pair in gradients:
        step(*pair)
    return [variable.numpy() for variable in (*variables, *optimizer.variables)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_the_fused_adam_is_keras_adam_over_a_schedule(dtype: str) -> None:
    config = TrainConfig(learning_rate=0.1, learning_rate_schedule="cosine")
    fused = optimizers.build(config, 30)
    schedule: dict[str, Any] = {"peak": 0.1, "num_warmup_steps": 3, "num_steps": 30, "kind": "cosine"}
    plain: keras.Optimizer = keras.optimizers.Adam(lambda: optimizers.learning_rate(plain.iterations.value, **schedule))
    assert type(fused) is FusedAdam
    fused.learning_rate = lambda: optimizers.learning_rate(fused.iterations.value, **schedule)
    random = np.random.default_rng(0)
    shapes = ((3, 4), (2,))
    gradients = [[tf.constant(random.normal(size=shape), dtype) for shape in shapes] for _ in range(30)]
    for a, b in zip(trained(fused, gradients, dtype), trained(plain, gradients, dtype), strict=True):
        np.testing.assert_allclose(np.float64(a), np.float64(b), rtol=1e-4, atol=1e-6)


def test_the_fused_adam_supports_the_gradient_of_an_embedding() -> None:
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
