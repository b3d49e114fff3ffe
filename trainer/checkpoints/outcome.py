"""What became of a finished training: how good it is on the test split, and as what it was registered.

Two files beside `result.json`, so that a later run of the same configuration on the same data can tell that there is
nothing left to do. Both name the checkpoint that they are about: of another one they say nothing.
"""

from __future__ import annotations

import hashlib
from typing import Any

from trainer.checkpoints import checkpoints
from trainer.files import storage

EVALUATION_FILE = "evaluation.json"
REGISTRATION_FILE = "registration.json"


def note_evaluation(checkpoint_directory: str, *, step: int, accuracy: float) -> None:
    """Write down the accuracy on the test split, 0 to 1, of the checkpoint of a step."""
    content = {"checkpoint_sha256": _digest(checkpoint_directory, step), "step": step, "accuracy": accuracy}
    storage.write_json(storage.join(checkpoint_directory, EVALUATION_FILE), content)


def note_registration(checkpoint_directory: str, *, model_name: str, serving_image: str, resource_name: str) -> None:
    """Write down that the run's best checkpoint is in the Model Registry, and as what.

    Args:
        checkpoint_directory: of the run.
        model_name: display name in the registry.
        serving_image: prediction container it is served with.
        resource_name: of the model and its version, projects/.../models/ID@VERSION.
    """
    content = {
        "checkpoint_sha256": _digest(checkpoint_directory, checkpoints.best_step(checkpoint_directory)),
        "model_name": model_name,
        "serving_image": serving_image,
        "resource_name": resource_name,
    }
    storage.write_json(storage.join(checkpoint_directory, REGISTRATION_FILE), content)


def conclusion(
    checkpoint_directory: str, *, minimum_accuracy: float, model_name: str, serving_image: str, region: str
) -> str:
    """Say what became of a finished run; empty while something is left to do (test, register).

    Args:
        checkpoint_directory: of a run that `trainer.checkpoints.identity.is_finished`.
        minimum_accuracy: a model below is not registered, 0 to 1.
        model_name: as what it shall be registered.
        serving_image: with what it shall be served.
        region: in whose registry, such as us-central1.
    """
    digest = _digest(checkpoint_directory, checkpoints.best_step(checkpoint_directory))
    evaluation = _read(checkpoint_directory, EVALUATION_FILE, digest)
    if not isinstance(accuracy := evaluation.get("accuracy"), float):
        return ""
    registration = _read(checkpoint_directory, REGISTRATION_FILE, digest)
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
    manifest = storage.join(directory, checkpoints.name(step), checkpoints.MANIFEST_FILE)
    return hashlib.sha256(storage.read_bytes(manifest)).hexdigest()
