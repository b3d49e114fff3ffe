"""By what a training run is known, and whether it is finished. Needs no TensorFlow for local paths."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from trainer.config import TrainConfig
from trainer.files import storage
from trainer.models import user_model

TRAINER_VERSION = "3"
"""Raise this when a change makes an equal configuration compute something else: old runs then start anew."""
RESULT_FILE = "result.json"


def identity(config: TrainConfig, dataset_fingerprint: str, run_label: str) -> dict[str, Any]:
    """All that decides what a run computes: a flat mapping, stored in each checkpoint and compared field by field.

    Raises:
        UserError: the model is a user's own and its source is not to be found.
    """
    return {
        **config.to_dict(),
        # A network of the user's own is known by its source: with other code it is another run.
        **({"model_source": user_model.digest(config.model)} if ":" in config.model else {}),
        "dataset_fingerprint": dataset_fingerprint,
        "trainer_version": TRAINER_VERSION,
        "run_label": run_label,
    }


def with_devices_of(found: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """An evaluator's own identity under --batch-size-per-replica, as a run's `found` has it.

    What follows from the devices that train is taken from there: the evaluator's machine may have more or fewer.
    """
    return own | {name: found.get(name) for name in ("global_batch_size", "learning_rate")}


def run_id(config: TrainConfig, dataset_fingerprint: str, run_label: str) -> str:
    """16 lower-case hexadecimal digits, from what the run computes and nothing else (no machine, no path)."""
    text = json.dumps(identity(config, dataset_fingerprint, run_label), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_finished(checkpoint_directory: str, *, expected_run_id: str = "") -> bool:
    """Whether the run of this folder is done: `result.json` is committed and belongs to the run.

    Args:
        checkpoint_directory: local or gs://; it need not exist.
        expected_run_id: what `run_id` gave; empty: the result must only agree with the checkpoint that it names.
    """
    result = read_result(checkpoint_directory)
    if not result or (expected_run_id and result.get("run_id") != expected_run_id):
        return False
    # The checkpoint must still be there, whole: a result whose checkpoint someone deleted or damaged cannot be
    # evaluated or exported, and is trained again from an older one.
    best = storage.join(checkpoint_directory, str(result.get("best_checkpoint")))
    manifest = storage.read_json(storage.join(best, "manifest.json"))
    return isinstance(manifest, dict) and manifest.get("run_id") == result.get("run_id") and _is_intact(best, manifest)


def _is_intact(checkpoint: str, manifest: dict[str, Any]) -> bool:
    try:
        return all(
            hashlib.sha256(storage.read_bytes(storage.join(checkpoint, name))).hexdigest() == expected["sha256"]
            for name, expected in manifest["files"].items()
        )
    except (FileNotFoundError, KeyError, TypeError, AttributeError):
        return False
    except OSError:
        # A bucket that does not answer says nothing about the checkpoint.
        if storage.is_remote(checkpoint):
            raise
        return False


def read_result(checkpoint_directory: str) -> dict[str, Any] | None:
    """The content of `result.json`, or None while the run is not finished."""
    result = storage.read_json(storage.join(checkpoint_directory, RESULT_FILE))
    return result if isinstance(result, dict) else None


def summary(result: dict[str, Any]) -> str:
    """The result in a few words."""
    return (
        f"{result['final_step']} steps, best at step {result['best_step']} with validation accuracy"
        f" {result['validation_accuracy']:.4f}"
    )
