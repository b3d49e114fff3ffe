"""Notes on what became of the model of a finished run.

The notes let a later run of the same configuration on the same data find what is left to do. Each names the checkpoint
that it describes and does not count for any other.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exact_resume.checkpoints import checkpoints, manifest, result_file, seal
from exact_resume.files import storage

_EVALUATION_FILE = "evaluation.json"
_COMPARISON_FILE = "comparison.json"
_REGISTRATION_FILE = "registration.json"
_DEPLOYMENT_FILE = "deployment.json"
_COMPLETION_FILE = "completion.json"


@dataclass(frozen=True, kw_only=True)
class Notes:
    """Notes on the best checkpoint of a finished run; an empty mapping where there is no note."""

    evaluation: Mapping[str, Any]
    """metric, score (on the test split, 0 to 1), verdict and reason."""
    comparison: Mapping[str, Any]
    """champion (a version's resource name, "" for none), is_promoted, reason, criteria, promotion."""
    registration: Mapping[str, Any]
    """model_name, serving_image, resource_name."""
    deployment: Mapping[str, Any]
    """endpoint (display name), resource_name (of the version), is_live."""


def note_evaluation(
    checkpoint_directory: str, *, step: int, metric: str, score: float, verdict: str, reason: str
) -> None:
    """Record the test results of the checkpoint of a step.

    Args:
        checkpoint_directory: Checkpoint folder of the run.
        step: Step of the checkpoint.
        metric: Name of the metric.
        score: Its value, 0 to 1.
        verdict: Whether it is good enough.
        reason: The reason of the verdict, one sentence.
    """
    noted = {"step": step, "metric": metric, "score": score, "verdict": verdict, "reason": reason}
    content = seal.add_seal({"checkpoint_sha256": _digest(checkpoint_directory, step)} | noted)
    storage.write_json(storage.join(checkpoint_directory, _EVALUATION_FILE), content)


def note_comparison(
    checkpoint_directory: str,
    *,
    champion: str,
    is_promoted: bool,
    reason: str,
    criteria: Mapping[str, Any],
    promotion: str,
) -> None:
    """Record how the run's best checkpoint compares with the champion.

    Args:
        checkpoint_directory: Checkpoint folder of the run.
        champion: Version that it was compared with, projects/.../models/ID@VERSION; empty for none, and where a later
            comparison with it may have another result.
        is_promoted: Whether it is to take the champion's place.
        reason: One sentence for users.
        criteria: Criteria of the decision; a run with others compares again.
        promotion: The version's label: why it is promoted, or registered without promotion; empty: not registered.
    """
    noted = {"champion": champion, "is_promoted": is_promoted, "reason": reason, "criteria": dict(criteria)}
    _note(checkpoint_directory, _COMPARISON_FILE, noted | {"promotion": promotion})


def note_registration(checkpoint_directory: str, *, model_name: str, serving_image: str, resource_name: str) -> None:
    """Record that the run's best checkpoint is in the Model Registry, and under which name.

    Args:
        checkpoint_directory: Checkpoint folder of the run.
        model_name: Display name in the registry.
        serving_image: Container image that serves the model, as the pipeline's parameter gives it.
        resource_name: Model and version, projects/.../models/ID@VERSION.
    """
    noted = {"model_name": model_name, "serving_image": serving_image, "resource_name": resource_name}
    _note(checkpoint_directory, _REGISTRATION_FILE, noted)


def note_deployment(checkpoint_directory: str, *, endpoint: str, resource_name: str, is_live: bool) -> None:
    """Record the deployment of a registered version: before it begins, and when it is live.

    A deployment that began and is not live is tried again, even if the aliases were restored to another version.

    Args:
        checkpoint_directory: Checkpoint folder of the run.
        endpoint: Display name of the endpoint.
        resource_name: Version, projects/.../models/ID@VERSION.
        is_live: Whether the version answers all requests of the endpoint.
    """
    noted = {"endpoint": endpoint, "resource_name": resource_name, "is_live": is_live}
    _note(checkpoint_directory, _DEPLOYMENT_FILE, noted)


def note_completion(checkpoint_directory: str, *, run_id: str, inputs_sha256: str) -> None:
    """Record that the job of other training code, with or without checkpoints of this package, has succeeded.

    From then on the notes name its `result.json` in place of the best checkpoint.

    Args:
        checkpoint_directory: Checkpoint folder of the run.
        run_id: Id of the run.
        inputs_sha256: Digest of its inputs.
    """
    noted = {"checkpoint_sha256": _result_digest(checkpoint_directory), "run_id": run_id}
    path = storage.join(checkpoint_directory, _COMPLETION_FILE)
    storage.write_json(path, noted | {"inputs_sha256": inputs_sha256})


def completion(checkpoint_directory: str) -> Mapping[str, Any]:
    """Return what `note_completion` has recorded about the present `result.json`; empty for nothing."""
    found = storage.read_json(storage.join(checkpoint_directory, _COMPLETION_FILE))
    is_present = isinstance(found, dict) and found.get("checkpoint_sha256") == _result_digest(checkpoint_directory)
    return found if is_present else {}


def notes(checkpoint_directory: str) -> Notes:
    """Return the notes on a run that `result_file.is_finished`, or whose completion is noted."""
    digest = best_digest(checkpoint_directory)
    evaluation = _read(checkpoint_directory, _EVALUATION_FILE, digest)
    return Notes(
        evaluation=evaluation if seal.is_intact(evaluation) else {},
        comparison=_read(checkpoint_directory, _COMPARISON_FILE, digest),
        registration=_read(checkpoint_directory, _REGISTRATION_FILE, digest),
        deployment=_read(checkpoint_directory, _DEPLOYMENT_FILE, digest),
    )


def best_digest(checkpoint_directory: str) -> str:
    """Return the SHA-256 of the manifest of the run's best checkpoint; after `note_completion`, of `result.json`."""
    completed = completion(checkpoint_directory).get("checkpoint_sha256")
    return completed or _digest(checkpoint_directory, checkpoints.best_step(checkpoint_directory))


def _note(directory: str, name: str, content: dict[str, Any]) -> None:
    storage.write_json(storage.join(directory, name), {"checkpoint_sha256": best_digest(directory)} | content)


def _read(directory: str, name: str, digest: str) -> dict[str, Any]:
    found = storage.read_json(storage.join(directory, name))
    return found if isinstance(found, dict) and found.get("checkpoint_sha256") == digest else {}


def _digest(directory: str, step: int) -> str:
    # The manifest has the checksums of all files of the checkpoint.
    path = storage.join(directory, manifest.name(step), manifest.MANIFEST_FILE)
    return hashlib.sha256(storage.read_bytes(path)).hexdigest()


def _result_digest(directory: str) -> str:
    path = storage.join(directory, result_file.RESULT_FILE)
    return hashlib.sha256(storage.read_bytes(path)).hexdigest() if storage.exists(path) else ""
