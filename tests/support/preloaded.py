"""What `tests.support.forks` imports once, in its server: nothing of this computes or starts a thread."""

import gc

from trainer.learner import libraries

libraries.load()

import trainer.loop.roles  # noqa: E402 - after TensorFlow without what training does not need
import trainer.loop.training  # noqa: E402, F401

gc.freeze()
