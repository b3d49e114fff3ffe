"""Recognises exact runs of earlier versions, which did not have the field `exact` in their identity."""

from trainer.checkpoints import identity, occupant
from trainer.files import event_log


def is_exact_of_earlier_version(checkpoint_directory: str) -> bool:
    """Return whether the run in a folder has no field `exact`, and all its starts were exact: it keeps its identity."""
    result = identity.read_result(checkpoint_directory) or {}
    found = result.get("identity") or occupant.identity_in(checkpoint_directory)
    if not found or "exact" in found:
        return False
    starts = [event for event in event_log.read(checkpoint_directory) if event["event"] == "start"]
    return bool(starts) and all(event.get("exact") is True for event in starts)
