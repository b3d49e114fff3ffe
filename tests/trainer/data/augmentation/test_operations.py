"""The faster operations have every bit of TensorFlow's own, for any transform and any pixels."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf
from keras.src.utils.backend_utils import DynamicBackend

from trainer.data.augmentation import operations

SHAPES = (8, 8, 3), (17, 30, 3), (2, 40, 1)
Floats = npt.NDArray[np.float32]


def fast() -> Any:
    return operations.fast(DynamicBackend(), lambda: tf.constant(0), image_size=64).image


def transforms(height: int, width: int, count: int) -> Floats:
    """Return turned, sheared, moved and projected images, also far outside, and some of an infinite projection."""
    random = np.random.default_rng(height)
    found = np.array([[1, 0, 0, 0, 1, 0, 0, 0]], np.float32).repeat(count, axis=0)
    found[:, [0, 1, 3, 4]] += random.uniform(-1, 1, (count, 4))
    found[:, [2, 5]] = random.uniform(-1, 1, (count, 2)) * (width, height) * random.choice([0.2, 1, 1e4], (count, 1))
    found[:, 6:] = random.uniform(-1, 1, (count, 2)) * random.choice([0, 1e-3, 0.1], (count, 1))
    # At the pixel (1, 1) the projection is at infinity; where all is 0, everywhere at one place.
    found[0, 6:], found[1] = (-0.5, -0.5), 0
    return found


def pixels(height: int, width: int, channels: int, *, whole: bool) -> Floats:
    random = np.random.default_rng(width)
    values = random.uniform(0, 255, (1, height, width, channels))
    return (values.round() if whole else values).astype(np.float32)


@pytest.mark.parametrize("fill_mode", ["reflect", "constant", "nearest", "wrap"])
@pytest.mark.parametrize("shape", SHAPES)
def test_projected_pixels_have_the_bits_of_tensorflow(shape: tuple[int, int, int], fill_mode: str) -> None:
    for number, transform in enumerate(transforms(*shape[:2], count=200)):
        images = pixels(*shape, whole=number % 2 == 0)
        options = {"fill_mode": fill_mode, "fill_value": 12.3 if number % 3 else 0.0}
        found = fast().affine_transform(tf.constant(images), tf.constant(transform[None]), **options)
        expected = tf.raw_ops.ImageProjectiveTransformV3(
            images=images,
            transforms=transform[None],
            output_shape=shape[:2],
            interpolation="BILINEAR",
            fill_mode=fill_mode.upper(),
            fill_value=options["fill_value"],
        )
        # Also where both are not a number; 0 has no sign in a pixel.
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("largest", [1.0, 255.0])
def test_hues_have_the_bits_of_tensorflow(largest: float) -> None:
    images = pixels(64, 64, 3, whole=True) * np.float32(largest / 255)
    # Equal channels, zeros, and each channel as the largest.
    images[0, 0, :27] = list(itertools.product((0, largest, largest / 3), repeat=3))
    images[0, 1:20, :, 1] = images[0, 1:20, :, 0]
    np.testing.assert_array_equal(fast().rgb_to_hsv(tf.constant(images)), tf.image.rgb_to_hsv(images))


def test_a_product_is_rounded_before_a_sum() -> None:
    """The square of 1 + 2**-12 has one bit too many for its last one to be there after a rounding."""
    value = tf.constant(1 + 2.0**-12)

    @tf.function(jit_compile=True, autograph=False)  # type: ignore[untyped-decorator]
    def difference(zero: tf.Tensor) -> tf.Tensor:
        return operations._times(value, value, zero) - (1 + 2.0**-11)

    assert difference(tf.constant(0)).numpy() == 0
