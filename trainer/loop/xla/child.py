"""The child process of `trainer.loop.xla.trial`: reads a request, times XLA on one device, prints the outcome."""

import dataclasses
import json
import resource
import signal
import sys
from typing import Any

from exact_resume.files.linux import end_with
from trainer.config import TrainConfig
from trainer.learner import libraries
from trainer.loop.xla.trial import Outcome


def main() -> None:
    """Answer the request of standard input in one line."""
    request = json.load(sys.stdin)
    # A core file would contain the model and fill the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    end_with(request.pop("parent"))
    # Ends this process even inside a compiler.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request.pop("limit_seconds"))
    print(json.dumps(dataclasses.asdict(measure(**request))), flush=True)


def measure(
    *,
    config: dict[str, Any],
    image_size: int,
    num_classes: int,
    num_steps: int,
    dtype: str,
    batch_size: int,
    min_seconds: float,
) -> Outcome:
    """Time the forward and backward pass with and without XLA, on random images.

    Args:
        config: Fields of the run's configuration.
        image_size: Height and width in pixels.
        num_classes: Number of classes.
        num_steps: Number of steps of the run.
        dtype: From `trainer.learner.precision.choose`.
        batch_size: Examples per step on one device.
        min_seconds: Duration of all steps from which compiling is worthwhile.
    """
    libraries.load()
    import tensorflow as tf

    from exact_resume.workers.cluster import Cluster
    from trainer.data.examples import ExamplesInMemory
    from trainer.data.sampler import Sampler
    from trainer.learner import distribution
    from trainer.learner.learner import Learner
    from trainer.loop.xla import timing

    strategy = distribution.make(Cluster(strategy="one-device"))
    own = dataclasses.replace(TrainConfig(**config), global_batch_size=batch_size)
    learner = Learner(own, strategy, image_size=image_size, num_classes=num_classes, num_steps=num_steps, dtype=dtype)
    shape = (batch_size, image_size, image_size, 3)
    images = tf.cast(tf.random.stateless_uniform(shape, (0, 0), maxval=256, dtype=tf.int32), tf.uint8)
    examples = ExamplesInMemory(images=images, labels=tf.zeros(batch_size, tf.int32), image_size=image_size)
    sampler = Sampler(num_examples=batch_size, global_batch_size=batch_size, seed=0)
    return timing.time_xla(learner, examples, sampler, min_seconds=min_seconds, num_steps=num_steps)


if __name__ == "__main__":
    main()
