"""Which run a checkpoint directory belongs to: another one is refused before it writes, takes or removes anything."""

from typing import Any

from exact_resume.checkpoints import checkpoints, lease, manifest
from exact_resume.checkpoints.manifest import TornCheckpoint
from trainer.config import TrainConfig
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
    values = {key: (_value(found, key), _value(wanted, key)) for key in sorted({*found, *wanted})}
    differing = [(key, there, here) for key, (there, here) in values.items() if there != here]
    if differing:
        named = ", ".join(f"{key} is {there!r} there and {here!r} here" for key, there, here in differing[:3])
        raise UserError(f"{directory!r} contains another run: {named}; give another --checkpoint-directory")


def _value(identity: dict[str, Any], key: str) -> Any:
    # Later fields are left out of the identity at their default.
    return identity.get(key, getattr(TrainConfig, key, None))
