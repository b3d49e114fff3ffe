"""Find the bottleneck of the training in its first steps, and whether XLA makes it faster on this machine."""

import math
import time
from collections.abc import Callable

import tensorflow as tf

from exact_resume.events.observers import Observer
from trainer.data.batches import Shard, training_batches
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner.learner import Learner
from trainer.loop.xla.trial import Outcome

MIN_REMAINING_SECONDS = 120.0
"""Remaining time of the run that makes a trial of XLA worth its compilation."""
_MAX_TIME_RATIO = 0.95
"""XLA is used if its time is below this share of the time without it."""


class FirstSteps:
    """Called once with the seconds per step, when they are stable."""

    def __init__(
        self,
        learner: Learner,
        training: Examples,
        sampler: Sampler,
        *,
        num_steps: int,
        trial: Callable[[], Outcome] | None,
        log_event: Observer,
    ) -> None:
        """Prepare for the call.

        Args:
            learner: The learner that trains.
            training: The training split.
            sampler: Order of its examples.
            num_steps: Length of the whole run.
            trial: Returns what XLA does on this machine; None if it is not to be used.
            log_event: Receives the notices.
        """
        self._learner, self._training, self._sampler = learner, training, sampler
        self._num_steps, self._trial, self._log_event = num_steps, trial, log_event

    def __call__(self, step_seconds: float) -> None:
        """Log the bottleneck and switch XLA on if it is faster. All workers call this after the same step."""
        rate = self._sampler.global_batch_size / step_seconds
        left = (self._num_steps - self._learner.step) * step_seconds
        self._log_event("notice", message=self._describe(rate, left))
        # All workers decide together: one that compiles would wait for one that does not.
        (votes,) = self._learner.add_up([float(self._trial is not None and left > MIN_REMAINING_SECONDS)])
        if votes > 0:
            self._log_event("notice", message=self._decide(self._trial() if self._trial else Outcome()))

    def _describe(self, rate: float, seconds_left: float) -> str:
        input_rate = self._input_rate()
        # Without accelerator, input pipeline and model share the cores, so an equal rate is not enough.
        if input_rate > 1.2 * rate:
            reason = "the model is the bottleneck, so faster or more devices help"
        else:
            reason = "the input is the bottleneck, so more CPU cores or a dataset in memory help, GPUs do not"
        devices = f"{self._learner.num_replicas} device" + "s" * (self._learner.num_replicas > 1)
        return (
            f"{devices}: {rate:,.0f} img/s, {rate / self._learner.num_replicas:,.0f} per device; the input alone"
            f" reaches {input_rate:,.0f}: {reason}; {_duration(seconds_left)} left"
        )

    def _input_rate(self, seconds: float = 0.3) -> float:
        """Return the images per second of the input pipelines of all workers alone."""
        num_workers = max(1, self._learner.num_replicas // self._learner.replicas_per_worker)
        shard = Shard(num_pipelines=num_workers, replicas_per_pipeline=self._learner.replicas_per_worker)
        batches = training_batches(self._training, self._sampler, start_step=0, stop_step=10**9, shard=shard)
        count, started = 0, 0.0
        for images, *_ in batches:
            count += int(tf.shape(images)[0])
            # The first batch fills the pipeline.
            started, count = (started, count) if started else (time.monotonic(), 0)
            if time.monotonic() - started > seconds:
                break
        return float(count * num_workers / (time.monotonic() - started))

    def _decide(self, outcome: Outcome) -> str:
        """Use XLA if it is faster on all workers together, and runs on each of them."""
        without, compiled = self._learner.add_up([outcome.without, outcome.compiled])
        if outcome.reason:
            return f"{outcome.reason}; continuing without it"
        if math.isinf(compiled):
            return "another worker cannot use XLA; continuing without it"
        if compiled < _MAX_TIME_RATIO * without:
            self._learner.use_xla(True)
            return f"XLA: {without / compiled:.2f} times as fast; switched on"
        return f"XLA: {without / compiled:.2f} times as fast; not used"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
