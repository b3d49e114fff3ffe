"""The evaluator: a machine that evaluates every new checkpoint while the others train."""

import time

from exact_resume.checkpoints import checkpoints, manifest, result_file
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.workers.cluster import Cluster
from trainer.learner import distribution
from trainer.loop import loop
from trainer.loop.training import Training

_POLL_SECONDS = 2.0
_ROUNDS_PER_CALL = 4
"""Batches per graph call; a stop request waits for them."""


def evaluate(training: Training) -> int:
    """Evaluate checkpoints until the last one is done; return the exit code.

    The training itself still decides which checkpoint is the best, at the ends of epochs, because that choice must not
    depend on the speed of another machine.
    """
    learner, watchdog = training.learner(distribution.make(Cluster())), training.folder.watchdog
    training.log_start(learner.num_replicas)
    validation = training.load("validation")
    done, best = 0, Best()

    def rounds(left: int) -> int:
        watchdog.beat()
        return 0 if training.stop.is_set else min(left, _ROUNDS_PER_CALL)

    while not training.stop.is_set:
        watchdog.beat()
        result = result_file.read_result(training.directory)
        newer = [step for step in reversed(checkpoints.steps(training.directory)) if step > done]
        for step in newer:
            if checkpoint := _load(training, step):
                started = time.monotonic()
                learner.restore(checkpoint)
                # None after a stop request.
                if not (score := learner.evaluate(validation, rounds)):
                    break
                found = loop.log_score(score, step, best, training.sampler(), started, training.folder.log_event)
                best = found if best.is_beaten_by(found.value, found.loss) else best
            done = step
        if not newer:
            if result:
                return 0
            time.sleep(_POLL_SECONDS)
    return training.stop.exit_code


def _load(training: Training, step: int) -> Checkpoint | None:
    try:
        checkpoint = checkpoints.load(training.directory, step)
    except manifest.TornCheckpoint as error:
        # Perhaps only removed in the meantime because there are newer ones.
        training.folder.notice(f"{manifest.name(step)} was skipped: {error}")
        return None
    training.folder.refuse_other_run(checkpoint.identity)
    return checkpoint
