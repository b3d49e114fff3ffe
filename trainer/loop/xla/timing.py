"""Times the forward and backward pass with and without XLA, in the process that calls it."""

import tensorflow as tf

from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner.learner import Learner
from trainer.loop.xla.trial import Outcome


def time_xla(
    learner: Learner, training: Examples, sampler: Sampler, *, num_steps: int = 0, min_seconds: float = 0.0
) -> Outcome:
    """Time the forward and backward pass with and without XLA.

    XLA is left out if `num_steps` steps without it take less than `min_seconds`.
    """

    def seconds(*, xla: bool) -> float:
        return learner.time_step(learner.batches(training, sampler, learner.step + 10**6), xla=xla)

    try:
        without = seconds(xla=False)
        if without * num_steps < min_seconds:
            return Outcome(without=without, reason="XLA was not tried, because the devices have little to do")
        return Outcome(without=without, compiled=seconds(xla=True))
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        return Outcome(reason=f"XLA cannot compile this model here ({str(error).splitlines()[0][:200]})")
