"""The devices of an exact run, because others would give other weights."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.manifest import TornCheckpoint
from localvertex_base.userinput.errors import UserError

Devices = Mapping[str, Any]
"""`kind`, `num_devices` and `num_machines`; in a manifest also `from_step`, which is 0."""


def refuse_other_devices(directory: str, here: Devices) -> None:
    """Refuse to continue an exact run on other devices.

    Raises:
        UserError: The newest checkpoint was trained on other devices.
    """
    for step in checkpoints.steps(directory):
        with contextlib.suppress(TornCheckpoint):
            found = manifest.read(directory, step).get("devices", [])
            if found and found != record(here):
                raise UserError(
                    f"the exact run in {directory!r} was trained on {describe(found)}, this start has"
                    f" {describe([here])}, which would give other weights; use the same devices, or another"
                    " --checkpoint-directory or --run-label (run_label in a pipeline)"
                )
            return


def record(here: Devices | None) -> list[Devices]:
    """Return the devices as manifests and results have them; empty for a run that is not exact."""
    return [{"from_step": 0, **here}] if here else []


def describe(devices: Sequence[Devices]) -> str:
    """Return the devices of a record in words."""
    (each,) = devices[-1:]
    machines = f" in {each['num_machines']} machines" if each["num_machines"] > 1 else ""
    return f"{each['num_devices']} x {each['kind']}{machines}"
