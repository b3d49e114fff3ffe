"""The file that marks a run as finished, and whether it counts."""

import hashlib
from typing import Any

from exact_resume.checkpoints import manifest, seal
from exact_resume.checkpoints.manifest import TornCheckpoint
from exact_resume.files import storage

RESULT_FILE = "result.json"


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


def lost_best_message(step: int) -> str:
    """Return the message about a best checkpoint that is lost at the end of the run."""
    return (
        f"the best checkpoint, of step {step}, was lost: it could not be saved, was removed or is damaged; free some"
        " space if the disk is full, and run again to resume from before that step"
    )
