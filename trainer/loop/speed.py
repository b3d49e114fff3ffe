"""What is known after the first steps: what holds the training up, and whether XLA makes it faster here."""

from __future__ import annotations

import math
import time

import tensorflow as tf

from trainer.data.batches import Shard, training_batches
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.files.observers import Observer
from trainer.learner.learner import Learner

SHORTEST_RUN_SECONDS = 120.0
"""Left of the run for a trial of XLA to be worth its compilation."""
_WORTH_IT = 0.95
"""XLA's time has to be below this share of the other."""


class FirstSteps:
    """Called once with the seconds of a step when they have settled."""

    def __init__(
        self, learner: Learner, training: Examples, order: Sampler, *, num_steps: int, try_xla: bool, observe: Observer
    ) -> None:
        self._learner, self._training, self._order = learner, training, order
        self._num_steps, self._try_xla, self._observe = num_steps, try_xla, observe

    def __call__(self, step_seconds: float) -> None:
        """Tell the bottleneck; switch XLA on if it is faster. All workers come here after the same step."""
        rate = self._order.global_batch_size / step_seconds
        left = (self._num_steps - self._learner.step) * step_seconds
        self._observe("notice", message=self._describe(rate, left))
        # Not each for itself: one that compiles would wait for one that does not.
        (votes,) = self._learner.add_up([float(self._try_xla and left > SHORTEST_RUN_SECONDS)])
        if votes > 0:
            self._observe("notice", message=self._trial())

    def _describe(self, rate: float, seconds_left: float) -> str:
        input_rate = self._input_rate()
        # The pipeline and the model share the cores of a machine without accelerator: equal is not yet enough.
        if input_rate > 1.2 * rate:
            reason = "the model is the bottleneck, so faster or more devices pay"
        else:
            reason = "the input is the bottleneck, so more CPU cores (or a dataset that fits into memory) pay, not GPUs"
        devices = f"{self._learner.num_replicas} device" + "s" * (self._learner.num_replicas > 1)
        return (
            f"{devices}: {rate:,.0f} img/s, {rate / self._learner.num_replicas:,.0f} a device; the input makes"
            f" {input_rate:,.0f}: {reason}; {_duration(seconds_left)} left of the run"
        )

    def _input_rate(self, seconds: float = 0.3) -> float:
        """Images a second of the input pipelines of all workers by themselves."""
        num_workers = max(1, self._learner.num_replicas // self._learner.replicas_per_worker)
        shard = Shard(num_pipelines=num_workers, replicas_per_pipeline=self._learner.replicas_per_worker)
        batches = training_batches(self._training, self._order, start_step=0, stop_step=10**9, shard=shard)
        count, started = 0, 0.0
        for images, *_ in batches:
            count += int(tf.shape(images)[0])
            # The first fills the pipeline.
            started, count = (started, count) if started else (time.monotonic(), 0)
            if time.monotonic() - started > seconds:
                break
        return float(count * num_workers / (time.monotonic() - started))

    def _trial(self) -> str:
        failure = ""
        try:
            without, compiled = (self._time(xla=xla) for xla in (False, True))
        except (tf.errors.OpError, ValueError, RuntimeError) as error:
            failure = str(error).splitlines()[0][:200]
            without, compiled = 0.0, math.inf
        without, compiled = self._learner.add_up([without, compiled])
        if failure:
            return f"XLA cannot compile this model here ({failure}); going on without"
        if compiled < _WORTH_IT * without:
            self._learner.use_xla(True)
            return f"XLA: {without / compiled:.2f} times as fast; switched on"
        return f"XLA: {without / compiled:.2f} times as fast; left off"

    def _time(self, *, xla: bool) -> float:
        batches = self._learner.batches(self._training, self._order, self._learner.step + 10**6)
        return self._learner.time_step(batches, xla=xla)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
