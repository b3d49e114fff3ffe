"""The outcome of a run: the result of the training, then its accuracy on the test split and its registration.

`result.json` marks the run as finished. The two other files let a later run of the same configuration on the same data
find that there is nothing left to do. Both name the checkpoint that they describe and do not count for any other.
"""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.checkpoints import checkpoints, identity, manifest, seal, starting_weights
from trainer.checkpoints.checkpoints import Best
from trainer.files import event_log, storage

_EVALUATION_FILE = "evaluation.json"
_REGISTRATION_FILE = "registration.json"


def write_result(
    checkpoint_directory: str,
    *,
    run_id: str,
    run_identity: dict[str, Any],
    final_step: int,
    num_planned_steps: int,
    stop_reason: str,
    best: Best,
    weights_sha256: str,
    batch_digests: npt.NDArray[np.uint64],
    num_devices: int,
    model: dict[str, Any] | None = None,
) -> None:
    """Commit the result of a run whose last checkpoint is committed; docs/events.md describes every field."""
    events, num_skipped_lines = event_log.read_complete(checkpoint_directory)
    history = [event for event in events if event["replica"] == event_log.PRIMARY]
    step_events = [event for event in history if event["event"] == "steps"]
    seconds = max(sum(event["seconds"] for event in step_events), 1e-9)
    num_steps = sum(event["last_step"] - event["first_step"] + 1 for event in step_events)
    noted = starting_weights.noted_start(checkpoint_directory)
    images_per_second = num_steps * run_identity["global_batch_size"] / seconds
    content = {
        "run_id": run_id,
        "identity": run_identity,
        "final_step": final_step,
        "num_planned_steps": num_planned_steps,
        "stop_reason": stop_reason,
        "best_step": best.step,
        "best_checkpoint": manifest.name(best.step),
        "validation_accuracy": best.accuracy,
        "validation_loss": best.loss,
        "weights_sha256": weights_sha256,
        "images_per_second": images_per_second,
        "images_per_second_per_device": images_per_second / num_devices,
        "num_restarts": max(0, sum(event["event"] == "start" for event in history) - 1),
        "num_skipped_lines": num_skipped_lines,
        "model": model,
        # A start from other weights, of a run that was ended before its first checkpoint, is not this run's.
        "started_from": noted if noted and noted.get("weights") == run_identity.get("weights") else None,
        "batch_digests": [f"{int(digest):016x}" for digest in batch_digests],
    }
    storage.write_json(storage.join(checkpoint_directory, identity.RESULT_FILE), seal.sealed(content))


def note_evaluation(checkpoint_directory: str, *, step: int, accuracy: float) -> None:
    """Record the accuracy on the test split, 0 to 1, of the checkpoint of a step."""
    content = {"checkpoint_sha256": _digest(checkpoint_directory, step), "step": step, "accuracy": accuracy}
    storage.write_json(storage.join(checkpoint_directory, _EVALUATION_FILE), content)


def note_registration(checkpoint_directory: str, *, model_name: str, serving_image: str, resource_name: str) -> None:
    """Record that the run's best checkpoint is in the Model Registry, and under which name.

    Args:
        checkpoint_directory: Checkpoint directory of the run.
        model_name: Display name in the registry.
        serving_image: Container image that serves the model.
        resource_name: Model and version, projects/.../models/ID@VERSION.
    """
    content = {
        "checkpoint_sha256": _digest(checkpoint_directory, checkpoints.best_step(checkpoint_directory)),
        "model_name": model_name,
        "serving_image": serving_image,
        "resource_name": resource_name,
    }
    storage.write_json(storage.join(checkpoint_directory, _REGISTRATION_FILE), content)


def conclusion(
    checkpoint_directory: str, *, minimum_accuracy: float, model_name: str, serving_image: str, region: str
) -> str:
    """Describe the outcome of a finished run; empty while it still has to be tested or registered.

    Args:
        checkpoint_directory: Checkpoint directory of a run that `trainer.checkpoints.identity.is_finished`.
        minimum_accuracy: A model below this accuracy, 0 to 1, is not registered.
        model_name: Display name under which it is to be registered.
        serving_image: Container image that is to serve it.
        region: Region of the registry, such as us-central1.
    """
    digest = _digest(checkpoint_directory, checkpoints.best_step(checkpoint_directory))
    evaluation = _read(checkpoint_directory, _EVALUATION_FILE, digest)
    if not isinstance(accuracy := evaluation.get("accuracy"), float):
        return ""
    registration = _read(checkpoint_directory, _REGISTRATION_FILE, digest)
    is_same = (registration.get("model_name"), registration.get("serving_image")) == (model_name, serving_image)
    name = str(registration.get("resource_name"))
    if is_same and f"/locations/{region}/" in name:
        return f"test accuracy {accuracy:.4f}, registered as {name}"
    if accuracy < minimum_accuracy:
        return f"test accuracy {accuracy:.4f}, below minimum_accuracy {minimum_accuracy:g}: not registered"
    return ""


def _read(directory: str, name: str, digest: str) -> dict[str, Any]:
    found = storage.read_json(storage.join(directory, name))
    return found if isinstance(found, dict) and found.get("checkpoint_sha256") == digest else {}


def _digest(directory: str, step: int) -> str:
    # The manifest has the checksums of all files of the checkpoint.
    path = storage.join(directory, manifest.name(step), manifest.MANIFEST_FILE)
    return hashlib.sha256(storage.read_bytes(path)).hexdigest()
