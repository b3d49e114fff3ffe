"""Random changes of images: functions of the images and the random numbers alone."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from trainer.data.augmentation import basic
from trainer.data.augmentation.basic import AUGMENTATIONS
from trainer.data.sampler import NUM_RANDOM_NUMBERS


def random_numbers(count: int, seed: int = 1) -> tf.Tensor:
    """float32 [count, NUM_RANDOM_NUMBERS]."""
    return tf.random.stateless_uniform([count, NUM_RANDOM_NUMBERS], seed=[seed, 2])


@pytest.mark.parametrize("name", ["shift", "flip-and-shift"])
def test_random_changes_follow_from_the_random_numbers_alone(name: str) -> None:
    images = tf.constant(np.random.default_rng(3).integers(0, 256, (16, 8, 8, 3), dtype=np.uint8))
    numbers = random_numbers(16)
    changed = AUGMENTATIONS[name](images, numbers)
    assert np.array_equal(changed, AUGMENTATIONS[name](images, numbers))
    assert not np.array_equal(changed, images)
    halves = [AUGMENTATIONS[name](images[a:b], numbers[a:b]) for a, b in ((0, 8), (8, 16))]
    assert np.array_equal(changed, np.concatenate(halves))


def test_shift_moves_by_whole_pixels_and_repeats_the_border() -> None:
    image = np.arange(8 * 8, dtype=np.uint8).reshape(1, 8, 8, 1).repeat(3, axis=3)
    lowest = AUGMENTATIONS["shift"](tf.constant(image), tf.constant([[0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]]))
    expected = np.concatenate([image[:, :1], image[:, :-1]], axis=1)
    assert np.array_equal(lowest, expected)
    assert np.array_equal(AUGMENTATIONS["none"](tf.constant(image), random_numbers(1)), image)


def test_flip_mirrors_about_half_of_the_images() -> None:
    images = tf.constant(np.tile(np.arange(16, dtype=np.uint8)[None, None, :, None], (400, 16, 1, 3)))
    changed = np.asarray(AUGMENTATIONS["flip-and-shift"](images, random_numbers(400))).astype(int)
    mirrored = (changed[:, 0, 0, 0] > changed[:, 0, -1, 0]).sum()
    assert 150 < mirrored < 250


def test_crops_are_inside_the_image_and_cover_all_sizes() -> None:
    top, left, height, width = np.asarray(basic.crop_boxes(random_numbers(4000), 100)).T
    assert min(top.min(), left.min()) == 0
    assert (top + height).max() == (left + width).max() == 100
    assert min(height.min(), width.min()) >= 20
    areas = height * width / 100**2
    assert areas.min() < 0.1
    assert areas.max() > 0.9
    whole = tf.constant([[0, 0, 0, 0.999999, 0.5, 0.5, 0.5]], tf.float32)
    assert np.asarray(basic.crop_boxes(whole, 64)).tolist() == [[0, 0, 64, 64]]


def test_a_crop_of_everything_is_the_image_itself() -> None:
    buffer = io.BytesIO()
    Image.effect_noise((80, 80), 90).convert("RGB").save(buffer, "JPEG")
    crop = tf.io.decode_and_crop_jpeg(buffer.getvalue(), [0, 0, 80, 80], channels=3, dct_method="INTEGER_ACCURATE")
    assert np.array_equal(basic.enlarge(crop, 80), np.asarray(Image.open(buffer)))
