"""The peak memory of a step or replica beside its machine's on Vertex AI, as the record has it and as users read it."""

import os
from collections.abc import Iterable, Sequence

from localvertex._base.json_object import JsonObject
from localvertex.containers.options import ENGINES
from localvertex.machines.catalogue.rows import MachineType

Memory = JsonObject
"""`peak_bytes`, `machine_type`, `machine_bytes` (both null if unknown), `severity` (empty, warning, error), `text`."""

_GB = 1 << 30
"""Google's tables of machines say GB for it."""

_NEARLY_FULL = 0.9


def of(command: Sequence[str], peak_bytes: int, machine: MachineType | None) -> Memory | None:
    """Return the memory of what a command has run; None if that is unknown.

    An engine runs a container's processes elsewhere.
    """
    if not peak_bytes or os.path.basename(command[0]) in ENGINES:
        return None
    machine_bytes = int(machine.memory_gb * _GB) if machine and machine.memory_gb else None
    share = peak_bytes / machine_bytes if machine_bytes else 0.0
    severity = "error" if share > 1 else "warning" if share > _NEARLY_FULL else ""
    text = f"peak {_figure(peak_bytes)}"
    if machine and machine_bytes:
        # Of two figures in GB, the first needs no unit.
        text = f"{text.removesuffix(' GB')} of {machine.memory_gb:g} GB ({machine.name})"
    text += {"error": ", would be out of memory on Vertex AI", "warning": ", nearly out of memory", "": ""}[severity]
    return {
        "peak_bytes": peak_bytes,
        "machine_type": machine.name if machine else None,
        "machine_bytes": machine_bytes,
        "severity": severity,
        "text": text,
    }


def largest(found: Iterable[Memory | None]) -> Memory | None:
    """Return the memory that fills most of its machine; None without any."""
    return max(
        filter(None, found), key=lambda each: each["peak_bytes"] / (each["machine_bytes"] or 1 << 60), default=None
    )


def of_task(entry: JsonObject) -> Memory | None:
    """Return the memory of the entry of a task: of its process, or the largest of its replicas."""
    replicas = (entry.get("custom_job") or {}).get("replicas", [])
    return largest([entry.get("memory"), *(each.get("memory") for each in replicas)])


def _figure(num_bytes: int) -> str:
    return f"{num_bytes / _GB:.1f} GB" if num_bytes >= _GB else f"{max(1, num_bytes >> 20)} MB"
