"""The .keras file of a model: it loads in Keras' safe mode with the same weights, or is left out with a reason."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.export import export

OWN = """
import keras
from keras import layers

class Unregistered(layers.Layer):
    def call(self, images):
        return keras.ops.cast(images, "float32") / 255

@keras.saving.register_keras_serializable("own")
class Registered(Unregistered):
    pass

def changed():
    layer = Scale(255.0)
    layer.size = 100.0
    return layer

@keras.saving.register_keras_serializable("own")
class Scale(layers.Layer):
    def __init__(self, size, **options):
        super().__init__(**options)
        self.size = size

    def call(self, images):
        return keras.ops.cast(images, "float32") / self.size

def model(first, image_size=16, num_classes=3):
    images = keras.Input((image_size, image_size, 3), dtype="uint8")
    hidden = layers.Flatten()(first(images))
    return keras.Model(images, layers.Dense(num_classes, activation="softmax", dtype="float32")(hidden))

def build(*, image_size, num_classes, weights):
    return model(layers.Lambda(lambda images: images / 255), image_size, num_classes)
"""
IMAGES = np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), dtype=np.uint8)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with a user's own layers."""
    folder = tmp_path / "code"
    folder.mkdir()
    name = f"own_layers_{os.path.basename(tmp_path).replace('-', '_')}"
    (folder / f"{name}.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(folder))
    return name


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        ("layers.Rescaling(1 / 255)", ""),
        ("Registered()", ""),
        ("Unregistered()", "TypeError: Could not locate class 'Unregistered'. Make sure custom classes"),
        ("changed()", "its probabilities differ by"),
        ("layers.Lambda(lambda images: images / 255)", "lambda"),
    ],
)
def test_a_file_that_loads_is_written_and_any_other_left_out(
    tmp_path: Path, module: str, layer: str, reason: str
) -> None:
    from trainer.results import keras_file

    own = importlib.import_module(module)
    model = own.model(eval(layer, vars(own)))
    path = tmp_path / keras_file.NAME
    if reason:
        with pytest.raises(keras_file.LeftOut) as caught:
            keras_file.write(model, str(tmp_path), IMAGES, tolerance=0.0)
        assert reason in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400
        assert not path.exists()
        return
    modules = keras_file.write(model, str(tmp_path), IMAGES, tolerance=0.0)
    assert modules == ([module] if layer == "Registered()" else [])
    assert os.listdir(path.parent) == ["model.keras"]


@pytest.mark.slow
def test_a_model_that_keras_cannot_load_is_exported_without_the_file(
    digits: Dataset, tmp_path: Path, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from exact_resume.checkpoints import checkpoints
    from exact_resume.checkpoints.checkpoints import Best, Checkpoint
    from trainer.checkpoints import identity, variables
    from trainer.models import models

    config = TrainConfig(model=f"{module}:build", epochs=1)
    model = models.build(config.model, image_size=digits.image_size, num_classes=digits.num_classes)
    checkpoint = Checkpoint(
        step=1,
        best=Best(step=1, accuracy=0.1, loss=1.0),
        identity=identity.identity(config, digits.fingerprint, ""),
        run_id=identity.run_id(config, digits.fingerprint, ""),
        arrays=variables.values(model.variables),
        batch_digests=np.zeros(1, np.uint64),
    )
    checkpoints.save(str(tmp_path / "run"), checkpoint)
    metadata = export(
        checkpoint_directory=str(tmp_path / "run"),
        dataset_directory=digits.directory,
        output_directory=str(tmp_path / "model"),
    )
    assert str(metadata["keras_file"]).startswith("left out: ")
    assert f"warning: the .keras file is {metadata['keras_file']}\n" == capsys.readouterr().err
    assert (tmp_path / "model" / "saved_model.pb").exists()
    assert os.listdir(tmp_path / "model" / "assets.extra") == ["model.json"]


@pytest.mark.slow
def test_the_command_of_the_models_page_loads_it_in_another_process(repository: Path, tmp_path: Path) -> None:
    from trainer.models import models
    from trainer.results import keras_file

    model = models.build("mnist-cnn", image_size=32, num_classes=10)
    images = IMAGES.repeat(2, axis=1).repeat(2, axis=2)
    (needed,) = keras_file.write(model, str(tmp_path), images, tolerance=0.0)
    page = (repository / "docs" / "models.md").read_text()
    (code,) = re.findall(r'^    python -c "(.*)"$', page, re.M)
    code = code.replace("import keras", f"import keras, {needed}").replace("MODEL", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=repository)
    assert done.returncode == 0, done.stderr
    assert "grey (Grey)" in done.stdout


def test_a_failing_disk_fails_the_export(tmp_path: Path) -> None:
    import keras

    from trainer.results import keras_file

    images = keras.Input((16, 16, 3), dtype="uint8")
    model = keras.Model(images, keras.layers.Dense(2)(keras.layers.Flatten()(images)))
    (tmp_path / keras_file.NAME).parent.mkdir()
    (tmp_path / keras_file.NAME).symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        keras_file.write(model, str(tmp_path), IMAGES, tolerance=0.0)
