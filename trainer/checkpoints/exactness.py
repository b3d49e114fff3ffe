"""Refuse exact runs on other devices."""

from collections.abc import Mapping, Sequence
from typing import Any

from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.manifest import TornCheckpoint
from exact_resume.errors import InputError

Devices = Mapping[str, Any]
"""`kind`, `num_devices` and `num_machines`; also `from_step` in the record of a run."""


def refuse_other_devices(directory: str, here: Devices) -> None:
    """Refuse to continue an exact run on other devices, which would give other weights.

    Raises:
        InputError: The newest checkpoint was trained on other devices.
    """
    found = _devices_in(directory)
    if found and not _are_equal(found[-1], here):
        raise InputError(
            f"the exact run in {directory!r} was trained on {describe_devices(found)}, this start"
            f" has {describe_devices([here])}, which would give other weights; use the same devices, another"
            " --checkpoint-directory or --run-label (run_label in a pipeline), or --allow-other-devices"
        )


def with_devices(record: Sequence[Devices], here: Devices | None, step: int) -> tuple[Devices, ...]:
    """Return the record of a run's devices with those used from a step on; empty for a run that is not exact."""
    if here is None:
        return ()
    return tuple(record) if record and _are_equal(record[-1], here) else (*record, {"from_step": step, **here})


def _are_equal(one: Devices, other: Devices) -> bool:
    return {**one, "from_step": 0} == {**other, "from_step": 0}


def _devices_in(directory: str) -> Sequence[Devices]:
    for step in checkpoints.steps(directory):
        try:
            return tuple(manifest.read(directory, step).get("extra", {}).get("devices", ()))
        except TornCheckpoint:
            continue
    return ()


def describe_devices(devices: Sequence[Mapping[str, Any]]) -> str:
    """Describe devices in the order in which a run used them."""
    texts = []
    for each in devices:
        since = f"from step {each['from_step']} on " if each.get("from_step") else ""
        machines = f" in {each['num_machines']} machines" if each["num_machines"] > 1 else ""
        texts.append(f"{since}{each['num_devices']} x {each['kind']}{machines}")
    return ", ".join(texts)
