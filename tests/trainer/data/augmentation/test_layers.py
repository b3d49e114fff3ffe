"""Keras' layers: what each of them does to an example follows from the random numbers of its position alone."""

import hashlib
import json
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf
from keras.src.layers.preprocessing.image_preprocessing import base_image_preprocessing_layer

from localvertex._base.userinput.errors import UserError
from trainer.data.augmentation import operations
from trainer.data.augmentation.layers import Augmentation
from trainer.data.augmentation.presets import LAYERS, MIXING, PRESETS
from trainer.data.sampler import NUM_RANDOM_NUMBERS

SIZE = 16
CONFIGS: dict[str, dict[str, Any]] = {
    "CenterCrop": {"height": 0.5, "width": 0.5},
    "RandomBrightness": {"factor": 0.5},
    "RandomColorDegeneration": {"factor": 1.0},
    "RandomColorJitter": {"brightness_factor": 0.5, "contrast_factor": 0.5},
    "RandomContrast": {"factor": 0.5},
    "RandomCrop": {"height": 0.5, "width": 0.5},
    "RandomGaussianBlur": {"sigma": [0.2, 1.0]},
    "RandomHue": {"factor": 0.5},
    "RandomInvert": {"factor": [0.5, 0.5]},
    "RandomPosterization": {"factor": [1, 7]},
    "RandomRotation": {"factor": 0.2},
    "RandomSaturation": {"factor": 1.0},
    "RandomSharpness": {"factor": 1.0},
    "RandomShear": {"x_factor": 0.5, "y_factor": 0.5},
    "RandomTranslation": {"height_factor": 0.4, "width_factor": 0.4},
    "RandomZoom": {"height_factor": 0.4},
    "Rescaling": {"scale": 0.5},
    "Solarization": {"addition_factor": 0.3, "threshold_factor": 0.5},
}
WITHOUT_RANDOM_NUMBERS = {
    "AutoContrast",
    "CenterCrop",
    "ContrastLimitedAdaptiveHistogramEqualization",
    "Equalization",
    "Identity",
    "Rescaling",
}


def layer(name: str, **config: Any) -> dict[str, Any]:
    return {"class_name": name, "config": config or CONFIGS.get(name, {})}


def numbers(count: int) -> tf.Tensor:
    return tf.random.stateless_uniform([count, NUM_RANDOM_NUMBERS], seed=[1, 2])


def augment(spec: Any, images: Any, labels: Any, random_numbers: tf.Tensor) -> tuple[npt.NDArray[Any], ...]:
    spec = json.loads(PRESETS[spec]) if isinstance(spec, str) else spec
    call = tf.function(Augmentation(spec, image_size=images.shape[1], num_classes=10), autograph=False)
    return tuple(np.asarray(part) for part in call(tf.constant(images), tf.constant(labels), random_numbers))


def noise(count: int) -> npt.NDArray[np.uint8]:
    """One image, as often as wanted: what differs afterwards comes from the random numbers."""
    image = np.random.default_rng(3).integers(40, 200, (1, SIZE, SIZE, 3), dtype=np.uint8)
    return image.repeat(count, axis=0)


REPLACED = (
    "AutoContrast ContrastLimitedAdaptiveHistogramEqualization CutMix MixUp RandomColorDegeneration RandomContrast"
    " RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale RandomHue RandomPerspective RandomSaturation"
    " RandomTranslation RandomZoom"
).split()
"""Layers that call an operation with a faster equal."""
FAST = ("RandomCrop", "RandomErasing", "RandomRotation")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in LAYERS if name not in MIXING],
)
def test_what_a_layer_does_follows_from_the_random_numbers_of_the_example_alone(name: str) -> None:
    images, labels = noise(8), np.arange(8, dtype=np.int32)
    once, given = augment([layer(name)], images, labels, numbers(8))
    again, _ = augment([layer(name)], images, labels, numbers(8))
    part, _ = augment([layer(name)], images[3:6], labels[3:6], numbers(8)[3:6])
    assert np.array_equal(once, again)
    assert np.array_equal(once[3:6], part)
    assert once.dtype == np.uint8
    assert given.tolist() == labels.tolist()
    assert (len({image.tobytes() for image in once}) == 1) == (name in WITHOUT_RANDOM_NUMBERS)


@pytest.mark.parametrize("size", [SIZE, 64])
@pytest.mark.parametrize(
    "spec",
    [
        *PRESETS,
        *([layer(name)] for name in REPLACED),
        [layer("RandomRotation", factor=0.5, fill_mode="constant", fill_value=9.5), layer("RandomPerspective")],
        [layer("RandomShear", x_factor=1.0, y_factor=1.0, fill_mode="wrap")],
        [layer("RandomRotation", factor=0.5, interpolation="nearest")],
        # For two images at a time.
        [[layer("MixUp"), layer("RandomRotation"), layer("RandomFlip"), layer("RandomPerspective")]],
    ],
)
def test_the_pixels_are_those_of_keras_own_operations(spec: Any, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(7).integers(0, 256, (16, size, size, 3), dtype=np.uint8)
    # One value in a channel, or in an image.
    images[0], images[2, ..., 1] = 255, 7
    found = augment(spec, images, np.arange(16, dtype=np.int32) % 10, numbers(16))
    monkeypatch.setattr(operations, "fast", lambda backend, *_: backend)
    monkeypatch.setattr(operations, "_is_compiled", lambda image_size: False)
    expected = augment(spec, images, np.arange(16, dtype=np.int32) % 10, numbers(16))
    assert [part.tobytes() for part in found] == [part.tobytes() for part in expected]


@pytest.mark.parametrize("name", MIXING)
def test_mixing_depends_on_the_two_partners_alone(name: str) -> None:
    images = np.random.default_rng(5).integers(0, 256, (8, SIZE, SIZE, 3), dtype=np.uint8)
    labels = np.arange(8, dtype=np.int32)
    once = augment([layer(name)], images, labels, numbers(8))
    part = augment([layer(name)], images[4:6], labels[4:6], numbers(8)[4:6])
    assert np.array_equal(once[0][4:6], part[0])
    assert np.array_equal(once[1][4:6], part[1])


@pytest.mark.parametrize("name", MIXING)
def test_labels_have_the_fractions_of_the_pixels(name: str) -> None:
    """Each image has the colour 20 times its label, so that its mean shows how much it has of which image."""
    labels = np.arange(10, dtype=np.int32)
    images = np.full((10, 30, 30, 3), 20, np.uint8) * labels[:, None, None, None].astype(np.uint8)
    config = {"alpha": 1.0} if name == "MixUp" else {}
    mixed, fractions = augment([layer(name, **config)], images, labels, numbers(10))
    np.testing.assert_allclose(fractions.sum(axis=1), 1, rtol=1e-5)
    partners = labels ^ 1
    assert [set(np.flatnonzero(row)) <= {a, b} for row, a, b in zip(fractions, labels, partners, strict=True)] == [
        True
    ] * 10
    # CutMix rounds its rectangle to whole pixels: at most 2 rows and columns of 30.
    np.testing.assert_allclose(mixed.mean(axis=(1, 2, 3)), fractions @ labels * 20, atol=0.5 if name == "MixUp" else 3)
    assert ((fractions > 0.02) & (fractions < 0.98)).any(axis=1).sum() >= 5
    assert len(set(fractions.max(axis=1).tolist())) > 5


def test_each_example_gets_one_layer_of_a_choice() -> None:
    spec = [[layer("Identity"), layer("Rescaling", scale=0.5), layer("Rescaling", scale=0)]]
    changed, _ = augment(spec, np.full((300, 2, 2, 3), 100, np.uint8), np.zeros(300, np.int32), numbers(300))
    assert all(70 < (changed[:, 0, 0, 0] == value).sum() < 130 for value in (100, 50, 0))


def test_the_layers_of_the_installed_keras_are_allowed_or_left_out_for_a_reason() -> None:
    base = base_image_preprocessing_layer.BaseImagePreprocessingLayer
    known = {name for name, each in vars(keras.layers).items() if isinstance(each, type) and issubclass(each, base)}
    # Draws while it is traced; changes no pixels; the images have their size.
    left_out = {"AugMix", "MaxNumBoundingBoxes", "Resizing"}
    assert known - {base.__name__} == {*LAYERS, *left_out} - {"Identity", "Rescaling"}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (layer("AugMix"), "AugMix"),
        (layer("Dense", units=3), "Dense"),
        (layer("RandomFlip", seed=3), "seed"),
        (layer("RandomBrightness", factor=0.1, value_range=[0, 1]), "value_range"),
        (layer("RandomZoom", height_factor=7), "RandomZoom"),
        (layer("RandomFlip", height_factor=7), "height_factor"),
        (
            layer("RandomFlip", mode="Horizontal"),
            "RandomFlip.mode is 'Horizontal'; expected one of: horizontal_and_vertical, horizontal",
        ),
        (layer("MixUp", alpha=0), "augmentation: MixUp.alpha is 0; expected a number from 0.01 to 1"),
        (layer("MixUp", alpha="a"), "augmentation: MixUp.alpha is 'a'; expected a number"),
        (
            layer("RandomCrop", height=1.5, width=1),
            "augmentation: RandomCrop.height is 1.5; expected a number from 0.01",
        ),
        (
            layer("CenterCrop", height=1, width=300),
            "augmentation: CenterCrop.width is 300; expected a number from 0.01",
        ),
    ],
)
def test_what_cannot_be_exact_or_fit_is_refused_by_name(entry: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason) as caught:
        Augmentation([[entry]], image_size=SIZE, num_classes=10)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        [[]],
        [{}],
        [{"config": {}}],
        [layer("RandomCrop", height=None, width=0.5)],
        [layer("RandomCrop", height=0, width=0)],
        [layer("RandomCrop", height=1e300, width=1)],
        [[layer("Identity"), layer("CenterCrop", height=0.001, width=0.5)]],
        [layer("Rescaling", scale="a")],
        [layer("Rescaling", scale=[1, 2])],
        [layer("Rescaling", scale=None)],
        [layer("MixUp", alpha="a")],
    ],
)
def test_what_would_end_the_training_is_refused_before_it(spec: list[Any]) -> None:
    with pytest.raises(UserError, match=r"^augmentation: ") as caught:
        Augmentation(spec, image_size=SIZE, num_classes=10).check(SIZE)
    assert "\n" not in str(caught.value)


def test_a_layer_may_have_no_config_and_presets_pass_the_check() -> None:
    for spec in ([{"class_name": "RandomFlip"}], *map(json.loads, PRESETS.values())):
        Augmentation(spec, image_size=SIZE, num_classes=10).check(SIZE)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_change_images_and_keep_them_recognisable(name: str) -> None:
    ramp = np.linspace(0, 255, SIZE, dtype=np.uint8)
    images = np.stack([np.stack([ramp[:, None].repeat(SIZE, 1)] * 3, axis=-1)] * 64)
    changed, labels = augment(name, images, np.arange(64, dtype=np.int32) % 10, numbers(64))
    assert (changed != images).any(axis=(1, 2, 3)).mean() > 0.5
    assert len({image.tobytes() for image in changed}) > 20
    # Still dark above and bright below.
    assert (changed[:, SIZE // 2 :].mean(axis=(1, 2, 3)) > changed[:, : SIZE // 2].mean(axis=(1, 2, 3)) + 50).all()
    assert (labels.ndim == 2) == (name == "strong")


def test_a_preset_that_changes_would_change_runs_that_exist() -> None:
    found = {
        name: hashlib.sha256(json.dumps(json.loads(text)).encode()).hexdigest()[:8] for name, text in PRESETS.items()
    }
    assert found == {"light": "35aa7776", "standard": "7f6e8199", "strong": "a7731a2d"}


def test_presets_are_known_without_keras() -> None:
    code = "import sys; import trainer.data.augmentation.presets; assert not {'keras', 'tensorflow'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
