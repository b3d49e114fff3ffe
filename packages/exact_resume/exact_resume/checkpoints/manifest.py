"""The manifest of a checkpoint: what it contains, with a seal over every field."""

from collections.abc import Mapping
from typing import Any

from exact_resume.checkpoints import seal
from exact_resume.files import storage
from exact_resume.files.publication import UNFENCED, Fence

MANIFEST_FILE = "manifest.json"
_FIELDS = {"step", "best", "run_id", "identity", "is_validated", "loss_scaling", "files"}
RUN_ID_DIGITS = 16


class TornCheckpoint(Exception):
    """A checkpoint whose files do not agree with its manifest; the message names the difference."""


def read(directory: str, step: int) -> dict[str, Any]:
    """Return the manifest of a step, without its seal.

    Raises:
        TornCheckpoint: It is missing, damaged or of another step.
        OSError: It cannot be read now; it may be intact.
    """
    try:
        return verified(storage.read_json(storage.join(directory, name(step), MANIFEST_FILE)), step)
    except IsADirectoryError as error:
        raise TornCheckpoint(f"{MANIFEST_FILE} is a folder") from error


def verified(found: Any, step: int) -> dict[str, Any]:
    """Return the content of a step's manifest without its seal, or raise `TornCheckpoint` if it is not intact."""
    if not isinstance(found, dict):
        raise TornCheckpoint(f"{MANIFEST_FILE} is missing or damaged")
    content = seal.without(found)
    if not seal.is_intact(found):
        raise TornCheckpoint(f"{MANIFEST_FILE} does not match its own checksum")
    # Without a seal, at least the identity has a checksum: the run id.
    if not seal.is_sealed(found) and (content.keys() != _FIELDS or content["run_id"] != run_id(content["identity"])):
        raise TornCheckpoint(f"{MANIFEST_FILE} has no checksum, and its run_id does not match its identity")
    if content.get("step") != step:
        raise TornCheckpoint(f"{MANIFEST_FILE} is of step {content.get('step')!r}, but the folder is of step {step}")
    return content


def run_id(identity: Mapping[str, Any]) -> str:
    """Return 16 lower-case hexadecimal digits of what a run computes."""
    return seal.digest(identity)[:RUN_ID_DIGITS]


def write(folder: storage.Path, content: dict[str, Any], fence: Fence = UNFENCED) -> None:
    """Seal and write a manifest."""
    fence.write(storage.join(folder, MANIFEST_FILE), storage.encode_json(seal.sealed(content)))


def name(step: int) -> str:
    """Return the folder name of the checkpoint of a step."""
    return f"step-{step:09d}"
