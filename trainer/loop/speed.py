"""Find the bottleneck of the training in its first steps."""

import time

import tensorflow as tf

from trainer.data.batches import Shard, training_batches
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner.learner import Learner

_SECONDS = 0.3
"""For the measurement of the input alone."""


def describe(learner: Learner, training: Examples, sampler: Sampler, step_seconds: float) -> str:
    """Return the images per second, those of the input alone, and what follows from them.

    Args:
        learner: The learner that trains.
        training: The training split.
        sampler: Order of its examples.
        step_seconds: Seconds per step, when they are stable.
    """
    rate, input_rate = sampler.global_batch_size / step_seconds, _input_rate(learner, training, sampler)
    # Without accelerator, input pipeline and model share the cores, so an equal rate is not enough.
    if input_rate > 1.2 * rate:
        reason = "the model is the bottleneck, so faster or more devices help"
    else:
        reason = "the input is the bottleneck, so more CPU cores or a dataset in memory help, GPUs do not"
    devices = f"{learner.num_replicas} device" + "s" * (learner.num_replicas > 1)
    return (
        f"{devices}: {rate:,.0f} img/s, {rate / learner.num_replicas:,.0f} per device; the input alone reaches"
        f" {input_rate:,.0f}: {reason}"
    )


def _input_rate(learner: Learner, training: Examples, sampler: Sampler) -> float:
    """Return the images per second of the input pipelines of all workers alone."""
    num_workers = max(1, learner.num_replicas // learner.replicas_per_worker)
    shard = Shard(num_pipelines=num_workers, replicas_per_pipeline=learner.replicas_per_worker)
    batches = training_batches(training, sampler, start_step=0, stop_step=10**9, shard=shard)
    count, started = 0, 0.0
    for images, *_ in batches:
        count += int(tf.shape(images)[0])
        # The first batch fills the pipeline.
        started, count = (started, count) if started else (time.monotonic(), 0)
        if time.monotonic() - started > _SECONDS:
            break
    return float(count * num_workers / (time.monotonic() - started))
