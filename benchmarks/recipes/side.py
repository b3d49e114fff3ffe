"""One training of one side, in a separate process: `python -m benchmarks.recipes.side ORDER`.

ORDER is a JSON object with the fields of `Order`. The last line of the output is the balanced accuracy on the test
split, which nothing in the training has read.
"""

import dataclasses
import json
import sys
import tempfile
from typing import TYPE_CHECKING

from trainer import command_line, task
from trainer.checkpoints import best
from trainer.data import dataset
from trainer.data.dataset import Dataset

if TYPE_CHECKING:
    import keras


@dataclasses.dataclass(frozen=True, kw_only=True)
class Order:
    """Training to do."""

    side: str
    """A name of `keras_recipes.RECIPES`, or a JSON object with fields of the trainer's configuration."""
    dataset: str
    model: str
    epochs: int
    batch_size: int
    seed: int


def main(order: Order) -> None:
    """Print the balanced accuracy on the test split."""
    command_line.set_environment()
    data = dataset.load(order.dataset)
    model = _ours(order, data) if order.side.startswith("{") else _keras(order, data)
    from trainer.models import metrics
    from trainer.results import predictions

    found = predictions.predict(model, data, "test")
    confusion = metrics.confusion_matrix(found.labels, found.probabilities.argmax(axis=1), data.num_classes)
    print(metrics.score("balanced-accuracy", confusion))


def _ours(order: Order, data: Dataset) -> "keras.Model":
    """Train with the command `trainer.task`, and return the model with the weights of the best checkpoint."""
    fields = {
        "dataset": order.dataset,
        "model": order.model,
        "epochs": order.epochs,
        "global_batch_size": order.batch_size,
        "seed": order.seed,
        **json.loads(order.side),
    }
    with tempfile.TemporaryDirectory() as folder:
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in fields.items()]
        if code := task.main([*flags, f"--checkpoint-directory={folder}/run"]):
            raise SystemExit(code)
        from trainer.checkpoints import restored

        return restored.model_of(best.find(f"{folder}/run", data), data).model


def _keras(order: Order, data: Dataset) -> "keras.Model":
    import keras
    import tensorflow as tf

    from benchmarks.recipes import keras_recipes
    from trainer.data import examples
    from trainer.models import models

    keras.utils.set_random_seed(order.seed)
    model = models.build(order.model, image_size=data.image_size, num_classes=data.num_classes)
    arrays = [
        tuple(part.numpy() for part in split.gather(tf.range(split.num_examples, dtype=tf.int64)))
        for split in (examples.load_split(data, name) for name in ("train", "validation"))
    ]
    keras_recipes.RECIPES[order.side](model, *arrays, epochs=order.epochs, batch_size=order.batch_size)
    return model


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
