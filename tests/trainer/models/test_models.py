"""The networks by name: what they compute, what of them is trained, and which weights they start from."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from localvertex._base.userinput.errors import UserError
from trainer.models import applications, models, table

# h5py converts the variables of Keras 3.15 in a way that NumPy 2 deprecates.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"
)
IMAGES = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)


# One of each family that differs in the base; building all forty takes minutes.
BUILT = (
    "convnet",
    "mnist-cnn",
    "small-resnet",
    "resnet50",
    "efficientnetv2-b0",
    "mobilenetv3-small",
    "trainer.models.custom.separable:build",
)


@pytest.fixture
def policy(request: pytest.FixtureRequest) -> Iterator[str]:
    """A precision of Keras, until the test ends."""
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy("float32")


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"], indirect=True)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in table.APPLICATIONS else []) for name in BUILT],
)
def test_every_model_gives_float32_probabilities_for_uint8_images(name: str, policy: str) -> None:
    model = models.build(name, image_size=32, num_classes=5, weights="none")
    probabilities = np.asarray(model(IMAGES))
    assert {variable.dtype for variable in model.trainable_variables} == {"float32"}
    assert all(np.isfinite(probabilities).ravel())
    assert probabilities.shape == (2, 5)
    assert probabilities.dtype == np.float32
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)


@pytest.mark.slow
def test_resnet50_keeps_its_base_frozen_and_its_head_is_the_codelabs(tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    base = keras.applications.ResNet50(weights=None, include_top=False, input_shape=(32, 32, 3))
    base.save_weights(str(tmp_path / "base.weights.h5"))
    model = models.build("resnet50", image_size=32, num_classes=5, weights=str(tmp_path / "base.weights.h5"))
    assert model.get_layer("head").units == 1016
    trainable = {variable.path.split("/")[0] for variable in model.trainable_variables}
    assert trainable == {"head", "logits"}
    loaded = model.get_layer("resnet50")
    assert all(np.array_equal(a, b) for a, b in zip(base.get_weights(), loaded.get_weights(), strict=True))
    # Batch normalisation of the frozen base stays in inference mode even while training.
    before = [np.array(value) for value in loaded.get_weights()]
    model(IMAGES, training=True)
    assert all(np.array_equal(a, b) for a, b in zip(before, loaded.get_weights(), strict=True))


@pytest.mark.slow
def test_resnet50_from_scratch_trains_everything_and_has_the_same_variables(tmp_path: Path) -> None:
    scratch = models.build("resnet50", image_size=32, num_classes=5, weights="none")
    base = keras.applications.ResNet50(weights=None, include_top=False, input_shape=(32, 32, 3))
    base.save_weights(str(tmp_path / "base.weights.h5"))
    frozen = models.build("resnet50", image_size=32, num_classes=5, weights=str(tmp_path / "base.weights.h5"))
    assert len(scratch.trainable_variables) > 100
    # Evaluation and export rebuild a frozen model with weights="none" and assign by position.
    assert [v.shape for v in scratch.variables] == [v.shape for v in frozen.variables]
    assert [v.name for v in scratch.variables] == [v.name for v in frozen.variables]


@pytest.mark.parametrize("ending", [".weights.h5", ".keras"])
def test_weights_of_a_file_are_loaded(tmp_path: Path, ending: str) -> None:
    keras.utils.set_random_seed(5)
    first = models.build("convnet", image_size=16, num_classes=3)
    path = str(tmp_path / f"saved{ending}")
    first.save_weights(path) if ending == ".weights.h5" else first.save(path)
    keras.utils.set_random_seed(6)
    second = models.build("convnet", image_size=16, num_classes=3, weights=path)
    assert all(np.array_equal(a, b) for a, b in zip(first.get_weights(), second.get_weights(), strict=True))


def test_weights_that_are_not_available_are_an_error_and_never_a_random_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OSError("URL fetch failure on https://storage.googleapis.com/...: None -- no route to host")

    monkeypatch.setattr(keras.utils, "get_file", refuse)
    monkeypatch.setattr("keras.src.applications.resnet.file_utils.get_file", refuse)
    message = (
        r"resnet50's imagenet weights could not be downloaded .*no route to host.*download that file \(..._notop.h5\)"
        r" elsewhere and put it into ~/.keras/models, or give its path as weights; weights=none"
    )
    with pytest.raises(UserError, match=message):
        models.build("resnet50", image_size=32, num_classes=3, weights="default")
    with pytest.raises(UserError, match="not found"):
        models.build("convnet", image_size=16, num_classes=3, weights=str(tmp_path / "no.weights.h5"))
    (tmp_path / "garbage.weights.h5").write_bytes(b"garbage")
    with pytest.raises(UserError, match="does not fit this network"):
        models.build("convnet", image_size=16, num_classes=3, weights=str(tmp_path / "garbage.weights.h5"))
    other = models.build("convnet", image_size=16, num_classes=4)
    other.save_weights(str(tmp_path / "other.weights.h5"))
    with pytest.raises(UserError, match="does not fit this network"):
        models.build("convnet", image_size=16, num_classes=3, weights=str(tmp_path / "other.weights.h5"))


@pytest.mark.parametrize(
    ("name", "size"), [("convnet", 7), ("mnist-cnn", 17), ("resnet50", 31), ("xception", 70), ("inceptionv3", 74)]
)
def test_images_that_are_too_small_are_refused(name: str, size: int) -> None:
    with pytest.raises(UserError, match=f"the dataset has {size}x{size}"):
        models.build(name, image_size=size, num_classes=3, weights="none")


@pytest.mark.parametrize(("image_size", "first_map"), [(8, 8), (32, 32), (48, 24), (96, 32), (224, 45)])
def test_small_resnet_has_small_maps_for_images_of_any_size(image_size: int, first_map: int) -> None:
    model = models.build("small-resnet", image_size=image_size, num_classes=3)
    first = next(layer for layer in model.layers if isinstance(layer, keras.layers.Add))
    assert first.output.shape == (None, first_map, first_map, 16)


def test_mnist_cnn_is_the_articles_network() -> None:
    """Five convolutions of 128 channels, a dense layer of 128; on 28x28 pixels the last map is 6x6."""
    model = models.build("mnist-cnn", image_size=28, num_classes=10)
    assert [layer.filters for layer in model.layers if isinstance(layer, keras.layers.Conv2D)] == [128] * 5
    assert model.get_layer("conv5").output.shape == (None, 6, 6, 128)


@pytest.mark.slow
def test_a_frozen_base_gives_the_same_features_while_training(tmp_path: Path) -> None:
    """EfficientNet has dropout of whole blocks."""
    base = keras.applications.EfficientNetV2B0(weights=None, include_top=False, input_shape=(32, 32, 3))
    base.save_weights(str(tmp_path / "base.weights.h5"))
    model = models.build("efficientnetv2-b0", image_size=32, num_classes=5, weights=str(tmp_path / "base.weights.h5"))
    features = keras.Model(model.input, model.get_layer("mean").output)
    assert np.array_equal(features(IMAGES, training=True), features(IMAGES, training=False))


@pytest.mark.slow
def test_fine_tuning_trains_the_base_and_keeps_its_statistics(tmp_path: Path) -> None:
    base = keras.applications.ResNet50(weights=None, include_top=False, input_shape=(32, 32, 3))
    base.save_weights(str(tmp_path / "base.weights.h5"))
    model = models.build(
        "resnet50", image_size=32, num_classes=5, weights=str(tmp_path / "base.weights.h5"), trainable="all"
    )
    assert len(model.trainable_variables) > 100
    assert not any("gamma" in variable.path for variable in model.trainable_variables)
    before = [np.array(value) for value in model.get_weights()]
    model(IMAGES, training=True)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))


def test_the_table_is_what_the_installed_keras_has() -> None:
    functions = {name for name, value in vars(keras.applications).items() if inspect.isfunction(value)}
    rows = table.APPLICATIONS.values()
    assert {row.function for row in rows} == functions
    assert all(row.name.replace("-", "") == row.function.lower() for row in rows)
    for row in rows:
        module = inspect.getmodule(getattr(keras.applications, row.function))
        preprocessing = getattr(keras.applications, row.preprocessing).preprocess_input
        own = getattr(module, "preprocess_input", None)
        assert preprocessing is own or preprocessing.__module__ == module.__name__, row.name


@pytest.mark.parametrize("name", ["xception", "inceptionv3", "efficientnet-b0", "vgg16"])
def test_the_smallest_image_size_is_keras_own(name: str) -> None:
    row = table.APPLICATIONS[name]
    smaller = (row.smallest_image_size - 1, row.smallest_image_size - 1, 3)
    with pytest.raises(ValueError, match=f"at least {row.smallest_image_size}x"):
        getattr(keras.applications, row.function)(weights=None, include_top=False, input_shape=smaller)


@pytest.mark.slow
def test_efficientnet_restored_without_its_download_computes_what_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keras adds a layer only with weights="imagenet"; an evaluation on a machine without network builds without it."""
    shape = {"include_top": False, "input_shape": (32, 32, 3)}
    source = keras.applications.EfficientNetB0(weights=None, **shape)
    source.get_layer(index=2).adapt_mean.assign([0.485, 0.456, 0.406])
    source.get_layer(index=2).adapt_variance.assign([0.229, 0.224, 0.225])
    source.save_weights(str(tmp_path / "notop.weights.h5"))
    # Only the download is replaced; Keras loads the file that it returns.
    found = lambda *args, **kwargs: str(tmp_path / "notop.weights.h5")  # noqa: E731
    monkeypatch.setattr("keras.src.applications.efficientnet.file_utils.get_file", found)
    published = keras.applications.EfficientNetB0(weights="imagenet", **shape)
    trained = models.build("efficientnet-b0", image_size=32, num_classes=5, weights="imagenet")
    base = trained.get_layer("efficientnetb0")
    pixels = IMAGES.astype(np.float32)
    assert np.allclose(base(pixels), published(pixels), atol=1e-5)
    monkeypatch.undo()
    restored = models.build("efficientnet-b0", image_size=32, num_classes=5, weights="none")
    restored.set_weights(trained.get_weights())
    applications.refresh(restored)
    assert np.array_equal(restored(IMAGES), trained(IMAGES))
