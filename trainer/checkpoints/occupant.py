"""Which run a checkpoint directory belongs to: another one is refused before it writes, takes or removes anything."""

from typing import Any

from trainer.checkpoints import checkpoints, lease, manifest
from trainer.checkpoints.manifest import TornCheckpoint
from vertex_gpu_training.userinput.errors import UserError


def identity_in(directory: str) -> dict[str, Any] | None:
    """Return the identity of the run in a directory, from its newest intact manifest or its lease; None: it is free."""
    for step in checkpoints.steps(directory):
        try:
            found: dict[str, Any] = manifest.read(directory, step)["identity"]
            return found
        except TornCheckpoint:
            continue
    return lease.identity_of_holder(directory)


def refuse_other_run(found: dict[str, Any], wanted: dict[str, Any], directory: str) -> None:
    """Refuse the result of another configuration.

    Raises:
        UserError: A field differs; the message has the first few with both values.
    """
    differing = [key for key in sorted({*found, *wanted}) if found.get(key) != wanted.get(key)]
    if differing:
        named = ", ".join(f"{key} is {found.get(key)!r} there and {wanted.get(key)!r} here" for key in differing[:3])
        raise UserError(f"{directory!r} contains another run: {named}; give another --checkpoint-directory")
