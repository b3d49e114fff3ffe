"""A small learner on one device, for tests of its steps and of what is measured on them."""

import dataclasses
from typing import Any

import tensorflow as tf

from trainer.config import TrainConfig
from trainer.learner.learner import Learner

NUM_STEPS = 14
CONFIG = TrainConfig(epochs=2, global_batch_size=32, learning_rate=0.003, augment="flip-and-shift")


def make_learner(dtype: str = "float32", **changes: Any) -> Learner:
    """Return a learner of `CONFIG`, with changed fields, for images of 16x16 pixels and 10 classes."""
    config = dataclasses.replace(CONFIG, **changes)
    strategy = tf.distribute.get_strategy()
    return Learner(config, strategy, image_size=16, num_classes=10, num_steps=NUM_STEPS, dtype=dtype)
