"""Print the batch digests of four steps with the preset `strong` on as many logical devices as the argument says.

The global batch is odd, so that a part may begin between two examples that are mixed with each other.
"""

import dataclasses
import json
import sys

import numpy as np
import tensorflow as tf

from tests.support.learners import CONFIG
from trainer.data.augmentation.layers import Augmentation
from trainer.data.augmentation.presets import PRESETS
from trainer.data.examples import ExamplesInMemory
from trainer.data.sampler import Sampler
from trainer.learner.learner import Learner

_SIZE = 64
"""From this size on, XLA compiles operations of the augmentation."""


def main() -> None:
    """Train on one device, or with MirroredStrategy on several."""
    count = int(sys.argv[1])
    devices = [tf.config.LogicalDeviceConfiguration()] * count
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
    tf.config.experimental.enable_op_determinism()
    names = [f"CPU:{number}" for number in range(count)]
    strategy = tf.distribute.MirroredStrategy(names) if count > 1 else tf.distribute.get_strategy()
    config = dataclasses.replace(CONFIG, global_batch_size=15, augment="none")
    learner = Learner(config, strategy, image_size=_SIZE, num_classes=10, num_steps=10)
    learner.augmentation = Augmentation(json.loads(PRESETS["strong"]), image_size=_SIZE, num_classes=10)
    pixels = np.random.default_rng(0).integers(0, 256, (60, _SIZE, _SIZE, 3), dtype=np.uint8)
    examples = ExamplesInMemory(images=tf.constant(pixels), labels=tf.range(60) % 10, image_size=_SIZE)
    sampler = Sampler(num_examples=60, global_batch_size=15, seed=3)
    print(learner.train(learner.batches(examples, sampler, 4), 4).digests.tolist())


if __name__ == "__main__":
    main()
