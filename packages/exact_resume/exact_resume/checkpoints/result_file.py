"""The file that marks a run as finished, and whether it counts."""

import hashlib
from collections.abc import Mapping
from typing import Any

from exact_resume.checkpoints import manifest, seal
from exact_resume.checkpoints.manifest import TornCheckpoint
from exact_resume.events import log as event_log
from exact_resume.files import storage
from exact_resume.files.publication import UNFENCED, Fence

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


def write(
    checkpoint_directory: str,
    *,
    run_id: str,
    identity: Mapping[str, Any],
    final_step: int | None,
    stop_reason: str,
    best_step: int,
    fence: Fence = UNFENCED,
    **fields: Any,
) -> None:
    """Mark a run as finished, once its last checkpoint is committed; docs/events.md describes every field.

    Args:
        checkpoint_directory: Local or gs://.
        run_id: Id of the run.
        identity: Settings that decide what the run computes.
        final_step: Number of steps done; None: unknown.
        stop_reason: Why it ended, in a few words.
        best_step: Step of the checkpoint that is the model.
        fence: Refuses the write if another process has replaced this one.
        fields: Further fields, as JSON values.
    """
    events, num_skipped_lines = event_log.read_complete(checkpoint_directory)
    starts = [event for event in events if event["event"] == "start" and event["replica"] == event_log.PRIMARY]
    content = {
        "run_id": run_id,
        "identity": identity,
        "final_step": final_step,
        "stop_reason": stop_reason,
        "best_step": best_step,
        "best_checkpoint": manifest.name(best_step),
        **fields,
        "num_restarts": max(0, len(starts) - 1),
        "num_skipped_lines": num_skipped_lines,
    }
    fence.write(storage.join(checkpoint_directory, RESULT_FILE), storage.encode_json(seal.add_seal(content)))


def read_result(checkpoint_directory: str) -> dict[str, Any] | None:
    """Return the content of `result.json`, or None if it is missing or damaged; `is_finished` shows what it means."""
    result = storage.read_json(storage.join(checkpoint_directory, RESULT_FILE))
    return result if isinstance(result, dict) and seal.is_intact(result) else None


def add(checkpoint_directory: str, **fields: Any) -> None:
    """Add fields to the file of a run whose processes have all ended; where there is no intact file, do nothing.

    Args:
        checkpoint_directory: Local or gs://.
        fields: What JSON can hold.
    """
    if (content := read_result(checkpoint_directory)) is not None:
        sealed = seal.add_seal(seal.without(content) | fields)
        storage.write_json(storage.join(checkpoint_directory, RESULT_FILE), sealed)


def lost_best_message(step: int) -> str:
    """Return the message about a best checkpoint that is lost at the end of the run."""
    return (
        f"the best checkpoint, of step {step}, was lost: it could not be saved, was removed or is damaged; free some"
        " space if the disk is full, and run again to resume from before that step"
    )
