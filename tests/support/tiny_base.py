"""A network of `keras.applications` that is traced in a fraction of a second, for what needs a pretrained base.

As a program it is `trainer.task` with this network: `tiny_base.py ARGUMENTS...`, or `tiny_base.py STEP -- ARGUMENTS...`
to kill itself as `killed_task.py` does.
"""

import runpy
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    from trainer import command_line

    command_line.set_environment()

import keras
from keras import layers

from trainer.models import models, table
from trainer.models.table import Application

NAME = "tiny-base"
NUM_LAYERS = 8


def make(weights: None, include_top: bool, input_shape: tuple[int, int, int]) -> keras.Model:
    """Return a base with two convolutions, each with batch normalisation, and dropout."""
    del weights, include_top
    images = keras.Input(input_shape)
    hidden = layers.BatchNormalization(name="norm1")(layers.Conv2D(4, 3, strides=4, name="conv1")(images))
    hidden = layers.Dropout(0.5, name="dropout")(layers.ReLU(name="relu1")(hidden))
    hidden = layers.BatchNormalization(name="norm2")(layers.Conv2D(6, 2, name="conv2")(hidden))
    return keras.Model(images, layers.ReLU(name="relu2")(hidden), name="tiny_base")


def install() -> None:
    """Let the trainer know the network."""
    keras.applications.TinyBase = make
    table.APPLICATIONS[NAME] = Application(
        name=NAME,
        function="TinyBase",
        preprocessing="mobilenet",
        smallest_image_size=8,
        usual_image_size=16,
        head_units=0,
    )
    models._DESCRIPTIONS[NAME] = "of the tests"


def uninstall() -> None:
    """Undo `install`."""
    del keras.applications.TinyBase, table.APPLICATIONS[NAME], models._DESCRIPTIONS[NAME]


def save_weights(folder: Path, image_size: int) -> str:
    """Write weights of the base that are not the initial ones; return the path of the file."""
    keras.utils.set_random_seed(7)
    base = make(None, include_top=False, input_shape=(image_size, image_size, 3))
    changed: list[Any] = [value + 0.01 for value in base.get_weights()]
    base.set_weights(changed)
    path = str(folder / "base.weights.h5")
    base.save_weights(path)
    return path


if __name__ == "__main__":
    from trainer import task

    install()
    if sys.argv[1].isdigit():
        runpy.run_path(str(Path(__file__).with_name("killed_task.py")))
    sys.exit(task.main(sys.argv[1:]))
