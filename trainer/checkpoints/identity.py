"""What identifies a training run, and whether it is finished. Needs no TensorFlow for local paths."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from exact_resume.checkpoints import manifest, seal
from exact_resume.checkpoints.manifest import TornCheckpoint
from exact_resume.files import storage
from trainer.config import TrainConfig
from trainer.models import user_model
from vertex_gpu_training.userinput.errors import UserError
from vertex_gpu_training.userinput.spelling import quoted

TRAINER_VERSION = "3"
"""Increase this when a change makes equal configurations compute something else: every run then starts from scratch."""
RESULT_FILE = "result.json"
_MAX_LABEL = 500


def identity(config: TrainConfig, dataset_fingerprint: str, run_label: str, *, exact: bool = False) -> dict[str, Any]:
    """Return everything that decides what a run computes, as a flat mapping that every checkpoint contains.

    Raises:
        UserError: The model is the user's own and its source is not found, or the label is not a short text.
    """
    check_run_label(run_label)
    return {
        **config.identifying(),
        # The user's own network is identified by its source: other code makes it another run.
        **({"model_source": user_model.digest(config.model)} if ":" in config.model else {}),
        "dataset_fingerprint": dataset_fingerprint,
        "trainer_version": TRAINER_VERSION,
        "run_label": run_label,
        # A field that did not exist from the start is left out at its default, so that earlier runs stay the same.
        **({"exact": True} if exact else {}),
    }


def check_run_label(run_label: str) -> None:
    """Refuse a label that could not be recorded or shown.

    Raises:
        UserError: It is too long, or has control characters or characters that are not UTF-8.
    """
    if len(run_label) > _MAX_LABEL or not run_label.isprintable():
        raise UserError(
            f"run_label is {quoted(run_label)}; expected at most {_MAX_LABEL} characters, all of them printable"
        )


def with_devices_of(found: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return an evaluator's own identity with the fields of a run that --batch-size-per-replica derives from devices.

    The evaluator's machine may have more or fewer devices than the machines that train.
    """
    return own | {name: found.get(name) for name in ("global_batch_size", "learning_rate")}


def run_id(config: TrainConfig, dataset_fingerprint: str, run_label: str, *, exact: bool = False) -> str:
    """Return 16 lower-case hexadecimal digits of what the run computes; machines and paths do not count."""
    return seal.digest(identity(config, dataset_fingerprint, run_label, exact=exact))[: manifest.RUN_ID_DIGITS]


def is_finished(checkpoint_directory: str, *, expected_run_id: str = "") -> bool:
    """Return whether the run in a folder is finished: `result.json` is committed and belongs to the run.

    Args:
        checkpoint_directory: Local or gs://; it need not exist.
        expected_run_id: Value of `run_id`; empty: the result only has to agree with the checkpoint that it names.
    """
    result = read_result(checkpoint_directory)
    if not result or (expected_run_id and result.get("run_id") != expected_run_id):
        return False
    # The best model of an undisturbed run is a different one.
    if result.get("lost_best_step") is not None:
        return False
    # A result whose checkpoint was deleted or damaged cannot be evaluated or exported: the run is trained again from
    # an older checkpoint.
    step = result.get("best_step")
    if not isinstance(step, int) or result.get("best_checkpoint") != manifest.name(step):
        return False
    try:
        content = manifest.read(checkpoint_directory, step)
        folder = storage.join(checkpoint_directory, manifest.name(step))
        return content["run_id"] == result.get("run_id") and all(
            hashlib.sha256(storage.read_bytes(storage.join(folder, name))).hexdigest() == expected["sha256"]
            for name, expected in content["files"].items()
        )
    except (TornCheckpoint, KeyError, TypeError, AttributeError, *storage.MISSING):
        return False


def read_result(checkpoint_directory: str) -> dict[str, Any] | None:
    """Return the content of `result.json`, or None if it is missing or damaged; `is_finished` shows what it means."""
    result = storage.read_json(storage.join(checkpoint_directory, RESULT_FILE))
    return result if isinstance(result, dict) and seal.is_intact(result) else None


def lost_best(step: int) -> str:
    """Return the message about a best checkpoint that is lost at the end of the run."""
    return (
        f"the best checkpoint, of step {step}, was lost: it could not be saved, was removed or is damaged; free some"
        " space if the disk is full, and run again to resume from before that step"
    )


def summary(result: dict[str, Any], constant_answer: tuple[str, float]) -> str:
    """Return a short summary of a result.

    Args:
        result: Content of `result.json`.
        constant_answer: A class, and the validation accuracy of always answering it.
    """
    steps = result["final_step"]
    # Results of earlier versions do not have the planned steps.
    planned = result.get("num_planned_steps", steps)
    early = "" if steps == planned else f" of {planned} (stopped early: {result['stop_reason']})"
    other = f"{result['metric']} {result['score']:.4f} and " if "score" in result else ""
    name, accuracy = constant_answer
    devices = result.get("devices") or []
    exact = f", {'exact' if len(devices) == 1 else 'not exact'} on {describe_devices(devices)}" if devices else ""
    return (
        f"{steps} steps{early}, best at step {result['best_step']} with validation {other}accuracy"
        f" {result['validation_accuracy']:.4f} ({accuracy:.4f} by always answering {quoted(name)}){exact}"
    )


def describe_devices(devices: Sequence[Mapping[str, Any]]) -> str:
    """Describe `exact_resume.checkpoints.exactness.Devices`, in the order in which a run used them."""
    texts = []
    for each in devices:
        since = f"from step {each['from_step']} on " if each.get("from_step") else ""
        machines = f" in {each['num_machines']} machines" if each["num_machines"] > 1 else ""
        texts.append(f"{since}{each['num_devices']} x {each['kind']}{machines}")
    return ", ".join(texts)
