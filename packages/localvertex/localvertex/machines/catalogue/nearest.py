"""The valid choices nearest to a requested machine, accelerator or region."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from math import log2

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import closest
from localvertex.machines.catalogue.catalogue import Catalogue, has_ended
from localvertex.machines.catalogue.rows import MachineType

SUCCESSORS: dict[str, tuple[str, ...]] = {
    "NVIDIA_TESLA_K80": ("NVIDIA_TESLA_T4", "NVIDIA_TESLA_V100", "NVIDIA_TESLA_P4"),
    "NVIDIA_TESLA_P100": ("NVIDIA_TESLA_V100", "NVIDIA_TESLA_T4", "NVIDIA_TESLA_P4"),
}
"""Retired accelerator -> its replacements, the usual choice first; all of them attach to N1 machines."""

_Offer = tuple[str, str, int]
"""machine_type, accelerator_type, accelerator_count."""

TOO_SMALL_FOR_GPUS = "n1-highmem-2"
"""A GPU on this machine type may stop writing logs (warning on Google's page on configuring compute)."""

_GENERAL_PURPOSE = "n1-standard-8"
"""Stands in for a machine type that always has accelerators."""

_OF_STEPS = "e2-standard-4"
"""The machine of a pipeline's step without limits (Google's page on machine types for a pipeline step)."""

_SIZE = re.compile(r"-(\d+)[gt]?$")
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Demand:
    """A requested machine; fields that do not matter are empty."""

    machine_type: str = ""
    accelerator_type: str = ""
    accelerator_count: int = 0
    """Accelerators per replica."""
    region: str = ""
    scheduling_strategy: str = "STANDARD"
    today: date


def combinations(catalogue: Catalogue, demand: Demand) -> tuple[str, ...]:
    """Return up to three valid machines with accelerators as text, the nearest to the demand first."""
    return tuple(f"{machine} with {count} x {accelerator}" for machine, accelerator, count in offers(catalogue, demand))


def offers(catalogue: Catalogue, demand: Demand) -> list[_Offer]:
    """Return up to three valid (machine, accelerator, count), the nearest to the demand first."""
    everything = _pool(catalogue, demand.region, demand.scheduling_strategy, demand.today)
    same_accelerator = [offer for offer in everything if offer[1] == demand.accelerator_type]
    same_machine = [offer for offer in everything if offer[0] == demand.machine_type]
    best = _best(catalogue, demand, same_accelerator or everything)
    if not any(offer[0] == demand.machine_type for offer in best):
        # The machine may matter more to the user than the accelerator.
        best = [*best[: _SHOWN - 1], *_best(catalogue, demand, same_machine)][:_SHOWN]
    return best


def _best(catalogue: Catalogue, demand: Demand, offers: Iterable[_Offer]) -> list[_Offer]:
    return sorted(offers, key=lambda offer: (_distance(catalogue, demand, offer), offer))[:_SHOWN]


@lru_cache(maxsize=256)
def _pool(catalogue: Catalogue, region: str, strategy: str, today: date) -> tuple[_Offer, ...]:
    """Return every valid (machine, accelerator, count) for that region, scheduling strategy and day."""
    return tuple(
        (machine, accelerator, count)
        for (machine, accelerator), counts in catalogue.counts.items()
        if _is_offered(catalogue, accelerator, region, strategy, today)
        for count in counts
    )


def _is_offered(catalogue: Catalogue, accelerator: str, region: str, strategy: str, today: date) -> bool:
    entry = catalogue.accelerators.get(accelerator)
    if entry is None or not entry.for_training or has_ended(entry, today):
        return False
    if strategy == "FLEX_START" and entry.flex_start != "yes":
        return False
    offer = catalogue.regions.get((accelerator, region))
    return not region or (offer is not None and offer.training == "yes")


def _distance(catalogue: Catalogue, demand: Demand, offer: _Offer) -> float:
    machine, accelerator, count = offer
    distance = abs(log2(count / max(demand.accelerator_count, 1)))
    distance += _machine_distance(catalogue, demand.machine_type, machine)
    if accelerator != demand.accelerator_type:
        successors = SUCCESSORS.get(demand.accelerator_type, ())
        distance += successors.index(accelerator) / 4 if accelerator in successors else 2
    return distance


@lru_cache(maxsize=32768)
def _machine_distance(catalogue: Catalogue, one: str, other: str) -> float:
    """Return how different two machine types are: 0 if equal, about 1 at twice the size, more across series."""
    if one == other:
        return 0.0
    sizes = [
        (_vcpus(catalogue, name), getattr(catalogue.machines.get(name), "memory_gb", None) or 0.0)
        for name in (one, other)
    ]
    gap = 0.25
    if all(vcpus for vcpus, _ in sizes):
        gap += abs(log2(sizes[0][0] / sizes[1][0]))
    if all(memory for _, memory in sizes):
        gap += abs(log2(sizes[0][1] / sizes[1][1])) / 2
    series, family = ([name.split("-")[:part] for name in (one, other)] for part in (1, 2))
    return gap + (series[0] != series[1]) + (family[0] != family[1]) / 4


def _vcpus(catalogue: Catalogue, name: str) -> float:
    machine = catalogue.machines.get(name)
    if machine and machine.vcpus:
        return machine.vcpus
    size = _SIZE.search(name)
    return float(size[1]) if size and len(size[1]) < 5 else 0.0


def machines(catalogue: Catalogue, name: str) -> tuple[str, ...]:
    """Return up to three machine types that a user may have meant by this name."""
    family = name.rsplit("-", 1)[0] + "-"
    # A family is what comes before a size: n1-standard8 is a misspelt name, not any machine of N1.
    relatives = [known for known in catalogue.machines if known.startswith(family) and _SIZE.search(name)]
    by_size = sorted(relatives, key=lambda known: (_machine_distance(catalogue, name, known), known))[:_SHOWN]
    return tuple(by_size) or closest(name, catalogue.machines, _SHOWN)


def named(name: str, accelerators: Iterable[str]) -> tuple[str, ...]:
    """Return the accelerators that a name such as T4, nvidia-tesla-t4 or NVIDIA_TESLA_L4 can mean."""
    parts = {part for part in name.upper().replace("-", "_").split("_") if part} - {"NVIDIA", "TESLA"}
    return tuple(full for full in accelerators if parts and parts <= set(full.split("_")))


def regions(catalogue: Catalogue, accelerator_type: str, region: str) -> tuple[str, ...]:
    """Return up to three regions that offer this accelerator for training, those on the same continent first."""
    continent = region.split("-")[0]
    found = [
        entry
        for (accelerator, _), entry in catalogue.regions.items()
        if accelerator == accelerator_type and entry.training == "yes"
    ]
    found.sort(key=lambda entry: (entry.doubtful, entry.region.split("-")[0] != continent))
    return tuple(f"{accelerator_type} in {entry.region}" for entry in found[:_SHOWN])


def without_accelerators(catalogue: Catalogue, machine_type: str) -> str:
    """Return the machine type for parameter servers: this one, or a general-purpose one if it always has GPUs."""
    machine = catalogue.machines.get(machine_type)
    return _GENERAL_PURPOSE if machine and machine.kind == "gpu-only" else machine_type


def of_step(catalogue: Catalogue, resources: JsonObject) -> MachineType | None:
    """Return the machine of a pipeline's step with these limits; None if they are known only at run time.

    Google's page says that the closest match is selected. Taken is the smallest machine that has all, of E2 if
    possible; a step that limits only its CPUs has 4 GB for each, as the default machine.

    Args:
        catalogue: The catalogue.
        resources: Resources as in a compiled file: cpuLimit, memoryLimit in GB, accelerator with type and count.
    """
    if not resources:
        return catalogue.machines.get(_OF_STEPS)
    if "{{$" in str(resources):
        return None
    cpus, memory_gb = (resources.get(name) or 0 for name in ("cpuLimit", "memoryLimit"))
    wanted = resources.get("accelerator") or {}
    kind, count = (wanted.get(f"resource{name}", wanted.get(name.lower())) for name in ("Type", "Count"))
    fitting = [
        each
        for each in catalogue.machines.values()
        if each.vcpus
        and each.vcpus >= cpus
        and each.memory_gb
        and each.memory_gb >= (memory_gb or 4 * cpus)
        and (int(count or 1) in catalogue.counts.get((each.name, kind), ()) if kind else each.kind != "gpu-only")
    ]
    return min(fitting, key=lambda each: (not each.name.startswith("e2-"), each.memory_gb, each.vcpus), default=None)
