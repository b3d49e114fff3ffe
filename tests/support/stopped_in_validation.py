"""`trainer.task` stopped by SIGTERM during the validation after STEP: `stopped_in_validation.py STEP -- ARGUMENTS...`.

The signal comes between two graph calls; small batches make sure that there are several.
"""

import os
import signal
import sys
from collections.abc import Callable

# `learner` imports TensorFlow before `task` sets the environment for --exact.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

from trainer import task
from trainer.data.examples import Examples
from trainer.learner import learner

learner.EVALUATION_BATCH_SIZE = 8
evaluate = learner.Learner.evaluate


def evaluate_and_stop(
    self: learner.Learner, examples: Examples, next_rounds: Callable[[int], int] = lambda left: left
) -> learner.Score | None:
    calls: list[int] = []

    def rounds(left: int) -> int:
        calls.append(left)
        if len(calls) == 2 and self.step == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGTERM)
        return next_rounds(left)

    return evaluate(self, examples, rounds)


learner.Learner.evaluate = evaluate_and_stop
sys.exit(task.main(sys.argv[3:]))
