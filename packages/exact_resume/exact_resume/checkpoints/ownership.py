"""Find the run that owns a checkpoint folder, and refuse another run before it changes anything."""

from collections.abc import Mapping
from typing import Any

from exact_resume.checkpoints import checkpoints, lease, manifest, result_file
from exact_resume.checkpoints.manifest import TornCheckpoint
from exact_resume.errors import InputError


def identity_in(directory: str) -> dict[str, Any] | None:
    """Return the identity of the run in a folder, from its newest intact manifest, lease or result; None: free."""
    for step in checkpoints.steps(directory):
        try:
            found: dict[str, Any] = manifest.read(directory, step)["identity"]
            return found
        except TornCheckpoint:
            continue
    return lease.identity_of_holder(directory) or (result_file.read_result(directory) or {}).get("identity")


def refuse_other_run(
    found: Mapping[str, Any],
    wanted: Mapping[str, Any],
    directory: str,
    *,
    defaults: Mapping[str, Any],
    way_on: str,
) -> None:
    """Refuse the result of another configuration.

    Args:
        found: Identity of the run in the folder.
        wanted: Identity of the run that is to continue there.
        directory: Checkpoint folder.
        defaults: Values of fields that an identity leaves out.
        way_on: Advice at the end of the message.

    Raises:
        InputError: A field differs; the message has the first few with both values.
    """
    there, here = {**defaults, **found}, {**defaults, **wanted}
    differing = [key for key in sorted({*found, *wanted}) if there.get(key) != here.get(key)]
    if differing:
        named = ", ".join(f"{key} is {there.get(key)!r} there and {here.get(key)!r} here" for key in differing[:3])
        raise InputError(f"{directory!r} contains another run: {named}; {way_on}")
