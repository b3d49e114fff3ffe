"""The machines that meet requirements, smallest first, and the candidates to try when one is out of stock."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

from accelerators.catalogue import nearest
from accelerators.catalogue.catalogue import Catalogue, has_ended
from accelerators.catalogue.nearest import SUCCESSORS, TOO_SMALL_FOR_GPUS, Demand
from accelerators.catalogue.rows import MachineType


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """Requirements of a job for one replica.

    Raises:
        ValueError: The count is below 1 or a minimum below 0.
    """

    accelerator_type: str
    accelerator_count: int
    min_vcpus: float = 0
    min_memory_gb: float = 0
    region: str = ""
    """Preferred region; empty for any."""
    today: date

    def __post_init__(self) -> None:
        """Refuse requirements that no machine can meet."""
        if self.accelerator_count < 1:
            raise ValueError(f"accelerator_count is {self.accelerator_count}; expected at least 1")
        if not (self.min_vcpus >= 0 and self.min_memory_gb >= 0):
            raise ValueError("vCPUs and memory must be 0 or more")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A machine, its region and how to request it."""

    machine_type: str
    accelerator_type: str
    accelerator_count: int
    region: str
    scheduling_strategy: str
    remark: str = ""
    """Remarks on the region for the user; usually empty."""


def fitting(catalogue: Catalogue, requirements: Requirements) -> list[MachineType]:
    """Return the machines that support the accelerators and are large enough, smallest first."""
    machines = [
        catalogue.machines[name]
        for name in catalogue.machines_with(requirements.accelerator_type)
        if name in catalogue.machines
        and requirements.accelerator_count in catalogue.counts[name, requirements.accelerator_type]
        and (catalogue.machines[name].vcpus or 0) >= requirements.min_vcpus
        and (catalogue.machines[name].memory_gb or 0) >= requirements.min_memory_gb
    ]
    return sorted(machines, key=lambda machine: (machine.vcpus or 0, machine.memory_gb or 0, machine.name))


def fallbacks(catalogue: Catalogue, requirements: Requirements, limit: int = 12) -> list[Candidate]:
    """Return the candidates to try in order: the smallest machine in the region, other regions, other accelerators.

    `check` finds no error in any of them. Prices are not known here and do not affect the order.

    Args:
        catalogue: The tables.
        requirements: Requirements for one replica.
        limit: Maximum number of candidates.
    """
    candidates: dict[Candidate, None] = {}
    for accelerator in (requirements.accelerator_type, *_others(catalogue, requirements)):
        candidates |= dict.fromkeys(_candidates(catalogue, requirements, accelerator))
    return list(candidates)[:limit]


def _candidates(catalogue: Catalogue, requirements: Requirements, accelerator: str) -> Iterator[Candidate]:
    machines = fitting(catalogue, replace(requirements, accelerator_type=accelerator))
    machines = [machine for machine in machines if machine.name != TOO_SMALL_FOR_GPUS] or machines
    entry = catalogue.accelerators[accelerator]
    if not machines or has_ended(entry, requirements.today) or not entry.for_training or "required" in entry.capacity:
        return
    # Machines of another size come from other stock; a second size is worth trying only in the first region.
    for number, region in enumerate(_regions(catalogue, requirements, accelerator)):
        for machine in machines[: 2 if number == 0 else 1]:
            for strategy in _strategies(entry.flex_start):
                yield Candidate(
                    machine_type=machine.name,
                    accelerator_type=accelerator,
                    accelerator_count=requirements.accelerator_count,
                    region=region,
                    scheduling_strategy=strategy,
                    remark=_remark(catalogue, accelerator, region),
                )


def _strategies(flex_start: str) -> tuple[str, ...]:
    """Return the ways to get a machine: at once, from a queue, or at the risk of preemption."""
    return ("STANDARD", "FLEX_START", "SPOT") if flex_start == "yes" else ("STANDARD", "SPOT")


def _regions(catalogue: Catalogue, requirements: Requirements, accelerator: str) -> list[str]:
    continent = requirements.region.split("-")[0]
    offers = [
        entry
        for (name, _), entry in catalogue.regions.items()
        if name == accelerator and entry.training == "yes" and catalogue.training_regions.get(entry.region)
    ]
    # A region with many accelerator types leaves the most to fall back to.
    types = Counter(entry.region for entry in catalogue.regions.values() if entry.training == "yes")
    offers.sort(
        key=lambda entry: (
            entry.region != requirements.region,
            entry.doubtful,
            bool(requirements.region) and entry.region.split("-")[0] != continent,
            -types[entry.region],
            entry.region,
        )
    )
    regions = [entry.region for entry in offers]
    return regions[:3] if accelerator == requirements.accelerator_type else regions[:1]


def _remark(catalogue: Catalogue, accelerator: str, region: str) -> str:
    entry = catalogue.regions[accelerator, region]
    if entry.doubtful:
        return "doubtful: Google's pages disagree"
    return "default quota 0: request quota first" if entry.default_quota == "0" else ""


def _others(catalogue: Catalogue, requirements: Requirements) -> list[str]:
    """Return the accelerators to fall back to: successors first, then those on the most similar machines."""
    successors = SUCCESSORS.get(requirements.accelerator_type, ())
    machines = fitting(catalogue, requirements)
    demand = Demand(
        machine_type=machines[0].name if machines else "",
        accelerator_count=requirements.accelerator_count,
        region=requirements.region,
        today=requirements.today,
    )
    near = (*nearest.offers_like(catalogue, demand), *nearest.offers_like(catalogue, replace(demand, region="")))
    return [name for name in dict.fromkeys((*successors, *near)) if name != requirements.accelerator_type]
