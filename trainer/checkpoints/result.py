"""result.json: the word that a run is done, and what came of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.checkpoints import checkpoints, variables
from trainer.checkpoints import identity as run_identity
from trainer.checkpoints.checkpoints import Best
from trainer.files import event_log as events
from trainer.files import storage
from trainer.learner import batch_digest
from trainer.learner.learner import Learner


def write(
    checkpoint_directory: str, run_id: str, identity: dict[str, Any], learner: Learner, best: Best,
    batch_digests: npt.NDArray[np.uint64],
) -> None:  # fmt: skip
    """Commit the result of a run whose last checkpoint is committed; docs/events.md tells every field."""
    history = [event for event in events.read(checkpoint_directory) if event["replica"] == events.PRIMARY]
    step_events = [event for event in history if event["event"] == "steps"]
    seconds = sum(event["seconds"] for event in step_events)
    images = sum((e["last_step"] - e["first_step"] + 1) * learner.config.global_batch_size for e in step_events)
    content = {
        "run_id": run_id,
        "identity": identity,
        "final_step": learner.step,
        "best_step": best.step,
        "best_checkpoint": checkpoints.name(best.step),
        "validation_accuracy": best.accuracy,
        "validation_loss": best.loss,
        "weights_sha256": checkpoints.digest(variables.values(learner.variables())),
        "images_per_second": images / max(seconds, 1e-9),
        "images_per_second_per_device": images / max(seconds, 1e-9) / learner.num_replicas,
        "num_restarts": max(0, sum(event["event"] == "start" for event in history) - 1),
        "batch_digests": batch_digest.to_text(batch_digests),
    }
    storage.write_json(f"{checkpoint_directory.rstrip('/')}/{run_identity.RESULT_FILE}", content)
