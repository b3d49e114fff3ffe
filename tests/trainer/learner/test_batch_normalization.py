"""The fused batch normalisation beside Keras' own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainer.learner.batch_normalization import FusedBatchNormalization, fuse


def layer_pair(**options):
    """Two equal layers, the first as Keras has it, the second fused."""
    pair = [keras.layers.BatchNormalization(gamma_initializer="random_normal", **options) for _ in range(2)]
    models = [keras.Sequential([keras.Input((6, 5, 4)), layer]) for layer in pair]
    models[1].set_weights(models[0].get_weights())
    fuse(models[1])
    return pair


def pass_through(layer, images, weights):
    with tf.GradientTape() as tape:
        tape.watch(images)
        outputs = layer(images, training=True)
        loss = tf.reduce_sum(tf.cast(outputs, tf.float32) * weights)
    values = [v.value for v in layer.trainable_variables]
    return [outputs, *tape.gradient(loss, [images, *values]), layer.moving_mean.value, layer.moving_variance.value]


@pytest.mark.parametrize("options", [{}, {"momentum": 0.5, "epsilon": 0.1}, {"scale": False}, {"center": False}])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_outputs_gradients_and_averages_are_keras_own(options, batch_size):
    random = np.random.default_rng(0)
    images = tf.constant(random.normal(3, 2, (batch_size, 6, 5, 4)), tf.float32)
    weights = tf.constant(random.normal(size=images.shape), tf.float32)
    plain, fused = layer_pair(**options)
    assert type(fused) is FusedBatchNormalization
    for _ in range(2):
        pairs = zip(pass_through(plain, images, weights), pass_through(fused, images, weights), strict=True)
        for theirs, ours in pairs:
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(plain(images, training=False), fused(images, training=False), rtol=1e-4, atol=1e-5)


def test_a_frozen_layer_uses_its_averages():
    plain, fused = layer_pair()
    plain.trainable = fused.trainable = False
    images = tf.ones((2, 6, 5, 4))
    np.testing.assert_array_equal(plain(images, training=True), fused(images, training=True))
    assert np.all(fused.moving_mean.numpy() == 0)


@pytest.mark.parametrize(
    "options", [{"synchronized": True}, {"renorm": True}, {"epsilon": 1e-6}, {"dtype": "bfloat16"}]
)
def test_what_the_operation_cannot_do_stays_keras_own(options):
    assert type(layer_pair(**options)[1]) is keras.layers.BatchNormalization


def test_it_is_found_inside_layers_and_half_precision_keeps_its_averages_in_float32():
    normalization = keras.layers.BatchNormalization(dtype="mixed_bfloat16")
    inner = keras.Sequential([keras.Input((6, 5, 4)), normalization])
    model = keras.Sequential([keras.Input((6, 5, 4)), inner])
    fuse(model)
    (layer,) = inner.layers
    assert type(layer) is FusedBatchNormalization
    images = np.random.default_rng(0).normal(3, 2, (64, 6, 5, 4)).astype(np.float32)
    assert model(images, training=True).dtype == tf.bfloat16
    assert layer.moving_mean.dtype == "float32"
    np.testing.assert_allclose(layer.moving_mean.numpy(), images.mean((0, 1, 2)) * 0.01, rtol=0.01)
