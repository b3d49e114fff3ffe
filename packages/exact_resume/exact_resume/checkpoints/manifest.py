"""The manifest of a checkpoint: what it contains, with a seal over every field."""

from collections.abc import Mapping
from typing import Any

from exact_resume.checkpoints import seal
from exact_resume.errors import InputError
from exact_resume.files import storage
from exact_resume.files.publication import UNFENCED, Fence

MANIFEST_FILE = "manifest.json"
RUN_ID_DIGITS = 16


class TornCheckpoint(Exception):
    """A checkpoint whose files do not agree with its manifest; the message names the difference."""


def read(directory: str, step: int) -> dict[str, Any]:
    """Return the manifest of a step, without its seal.

    Raises:
        TornCheckpoint: It is missing, damaged or of another step.
        InputError: An earlier version wrote it.
        OSError: It cannot be read now; it may be intact.
    """
    try:
        return verify(storage.read_json(storage.join(directory, name(step), MANIFEST_FILE)), step)
    except IsADirectoryError as error:
        raise TornCheckpoint(f"{MANIFEST_FILE} is a folder") from error


def verify(found: Any, step: int) -> dict[str, Any]:
    """Return the content of a step's manifest without its seal, or raise `TornCheckpoint` if it is not intact."""
    if not isinstance(found, dict):
        raise TornCheckpoint(f"{MANIFEST_FILE} is missing or damaged")
    content = seal.without(found)
    # Not taken for a damaged one, which the next save would remove; a flipped bit hides only one of the two.
    if "step" in found and not found.keys() & {seal.FIELD, "validations"}:
        raise of_earlier_version(step)
    if not seal.is_intact(found):
        raise TornCheckpoint(f"{MANIFEST_FILE} does not match its own checksum")
    if content.get("step") != step:
        raise TornCheckpoint(f"{MANIFEST_FILE} is of step {content.get('step')!r}, but the folder is of step {step}")
    return content


def of_earlier_version(step: int) -> InputError:
    """Return the error that refuses a checkpoint in the format of an earlier version."""
    return InputError(
        f"{name(step)} is a checkpoint of an earlier version, which cannot be continued; use another folder (in a"
        " pipeline, another run_label)"
    )


def run_id(identity: Mapping[str, Any]) -> str:
    """Return 16 lower-case hexadecimal digits of what a run computes."""
    return seal.digest(identity)[:RUN_ID_DIGITS]


def write(folder: storage.Path, content: dict[str, Any], fence: Fence = UNFENCED) -> None:
    """Seal and write a manifest."""
    fence.write(storage.join(folder, MANIFEST_FILE), storage.encode_json(seal.add_seal(content)))


def name(step: int) -> str:
    """Return the folder name of the checkpoint of a step."""
    return f"step-{step:09d}"
