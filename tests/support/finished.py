"""Writes what a finished training run of one step leaves, without training."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from exact_resume.checkpoints import checkpoints, result_file
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from trainer.results import outcome


def write_finished_run(
    directory: str,
    *,
    run_id: str,
    identity: dict[str, Any],
    accuracy: float,
    arrays: Sequence[np.ndarray] = (),
    model: dict[str, Any] | None = None,
) -> None:
    """Write the checkpoint of step 1 and the result of a run.

    Args:
        directory: Its checkpoint folder.
        run_id: Its id.
        identity: Identity of the run.
        accuracy: Of the best step, on the validation split.
        arrays: Values of its variables.
        model: Network in the result.
    """
    best = Best(step=1, accuracy=accuracy, loss=1.0)
    saved = Checkpoint(step=1, best=best, identity=identity, run_id=run_id, arrays=list(arrays))
    checkpoints.save(directory, saved)
    result_file.write(
        directory,
        run_id=run_id,
        identity=identity,
        final_step=1,
        stop_reason="",
        best_step=1,
        num_planned_steps=1,
        validation_accuracy=accuracy,
        validation_loss=best.loss,
        model=model,
        batch_digests=[],
    )


def note_evaluation(
    directory: str, score: float, *, metric: str = "accuracy", verdict: str = "better", step: int = 1
) -> None:
    """Note the evaluation of the checkpoint of a step of a run."""
    outcome.note_evaluation(
        directory, step=step, metric=metric, score=score, verdict=verdict, reason=f"{verdict}, says the test"
    )
