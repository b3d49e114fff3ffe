"""Train each recipe on one device and on two, and print the names of those that gave the same."""

import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Any

from trainer import command_line

command_line.set_environment()

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from localvertex._base.userinput.errors import UserError  # noqa: E402
from tests.support import tiny_base  # noqa: E402
from trainer.checkpoints import variables  # noqa: E402
from trainer.config import TrainConfig  # noqa: E402
from trainer.data.examples import ExamplesInMemory  # noqa: E402
from trainer.data.sampler import Sampler  # noqa: E402
from trainer.learner import distribution  # noqa: E402
from trainer.learner.learner import Learner  # noqa: E402
from trainer.models import recipes, table  # noqa: E402
from trainer.models.recipes import OPTIMIZERS  # noqa: E402

_EMA = {"use_ema": True, "weight_decay": 0.01, "global_clipnorm": 1.0}
_FOCAL = {
    "loss": {"class_name": "CategoricalFocalCrossentropy", "config": {"label_smoothing": 0.1}},
    "class_weights": "balanced",
    "learning_rate": {"class_name": "ExponentialDecay", "config": {"initial_learning_rate": 0.01, "decay_rate": 0.5}},
}


_TWO_PHASES = {
    "optimizer": {"class_name": "SGD", "config": {"momentum": 0.9} | _EMA},
    "learning_rate": 0.1,
    "fine_tuning": {"start": 0.4, "learning_rate_multiplier": 0.1},
}


def main() -> None:
    """Compare all recipes."""
    distribution.split_cpu(2)
    tiny_base.install()
    # With a hidden layer the head has no dropout, which differs with the number of devices.
    table.APPLICATIONS[tiny_base.NAME] = dataclasses.replace(table.APPLICATIONS[tiny_base.NAME], head_units=8)
    base = tiny_base.save_weights(Path(tempfile.mkdtemp()), 16)
    random = np.random.default_rng(0)
    labels = random.choice(4, 64, p=[0.6, 0.2, 0.1, 0.1]).astype(np.int32)
    images = tf.constant(random.integers(0, 255, (64, 16, 16, 3)).astype(np.uint8))
    examples = ExamplesInMemory(images=images, labels=tf.constant(labels), image_size=16)
    strategies = (tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))
    sampler = Sampler(num_examples=64, global_batch_size=16, seed=0)
    counts = np.bincount(labels).tolist()

    def learner(content: dict[str, Any], strategy: tf.distribute.Strategy) -> Learner:
        network: dict[str, Any] = {"model": "tests.support.tiny_network:build"}
        if "fine_tuning" in content:
            network = {"model": tiny_base.NAME, "weights": base}
        config = TrainConfig(**network, recipe=json.dumps(content), global_batch_size=16, augment="none")
        weights = recipes.parse(config.recipe).weights_of(counts, "abcd")
        return Learner(config, strategy, image_size=16, num_classes=4, num_steps=10, class_weights=weights)

    cases: dict[str, dict[str, Any]] = {
        name: {"optimizer": {"class_name": name, "config": _EMA}} for name in OPTIMIZERS.keys
    }
    for name, content in {**cases, "losses": _FOCAL, "phases": _TWO_PHASES}.items():
        # Balanced sampling with the losses.
        order = dataclasses.replace(sampler, labels=labels) if name == "losses" else sampler
        ends, digests, losses = [], [], []
        for strategy in strategies:
            made = learner(content, strategy)
            batches, digest = made.batches(examples, order, 10), list[int]()
            for num_steps in (4, 2):
                made.fine_tune(made.step)
                digest += made.train(batches, num_steps).digests.tolist()
            digests.append(digest)
            ends.append(variables.values(made.variables()))
            score = made.evaluate(examples)
            losses.append(score.loss if score else 0.0)
        np.testing.assert_equal(digests[0], digests[1])
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
        for one, two in zip(*ends, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)
        print(name)
    accumulating = {"optimizer": {"class_name": "SGD", "config": {"gradient_accumulation_steps": 2}}}
    try:
        learner(accumulating, strategies[1])
    except UserError as error:
        print("refused" if "does not work on 2 devices" in str(error) else error)


if __name__ == "__main__":
    main()
