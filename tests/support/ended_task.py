"""`trainer.task` that ends as one of `vertex_testing.ends`, which the variable ENDS names; empty: undisturbed.

The end comes after the block of steps that reaches it.
"""

import dataclasses
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from exact_resume.checkpoints import checkpoints, lease, manifest
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from trainer import command_line, task
from trainer.learner.learner import Learner, Steps
from vertex_testing.ends import Disturbance

end = os.environ["ENDS"]
(folder,) = [word.partition("=")[2] for word in sys.argv if word.startswith("--checkpoint-directory=")]
disturb = Disturbance(end, folder, is_alone="TF_CONFIG" not in os.environ)
learn, save = Learner.train, checkpoints.save


def train(learner: Learner, *arguments: Any) -> Steps:
    steps = learn(learner, *arguments)
    disturb(learner.step)
    return dataclasses.replace(steps, losses=steps.losses + disturb.loss) if math.isinf(disturb.loss) else steps


def lose_best(directory: str, checkpoint: Checkpoint, *arguments: Any) -> str:
    if 0 < checkpoint.best.step < checkpoint.step:
        shutil.rmtree(Path(directory, manifest.name(checkpoint.best.step)), ignore_errors=True)
    return save(directory, checkpoint, *arguments)


Learner.train = train
if end == "lost best":
    checkpoints.save = lose_best
    Best.is_beaten_by = lambda best, *score: best.step == 0
lease.HEARTBEAT_SECONDS, lease.WATCH_SECONDS = 0.1, 2.0
disturb.watched()
sys.exit(command_line.run(lambda: task.main(sys.argv[1:])))
