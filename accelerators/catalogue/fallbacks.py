"""Machines that fit a wish, smallest first, and where else to go when one is out of stock."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

from accelerators.catalogue import nearest
from accelerators.catalogue.catalogue import Catalogue, has_ended
from accelerators.catalogue.nearest import SUCCESSORS, TOO_SMALL_FOR_GPUS, Demand
from accelerators.catalogue.rows import MachineType


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a job needs of one replica.

    Raises:
        ValueError: If the count is below 1 or a minimum below 0.
    """

    accelerator_type: str
    accelerator_count: int
    min_vcpus: float = 0
    min_memory_gb: float = 0
    region: str = ""
    today: date

    def __post_init__(self) -> None:
        """Refuse a wish that no machine could mean."""
        if self.accelerator_count < 1:
            raise ValueError(f"accelerator_count is {self.accelerator_count}; expected at least 1")
        if not (self.min_vcpus >= 0 and self.min_memory_gb >= 0):
            raise ValueError("vCPUs and memory must be 0 or more")


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One thing to try."""

    machine_type: str
    accelerator_type: str
    accelerator_count: int
    region: str
    scheduling_strategy: str
    remark: str = ""


def fitting(catalogue: Catalogue, wish: Wish) -> list[MachineType]:
    """Return the machines that take the accelerators and are large enough, smallest first."""
    machines = [
        catalogue.machines[name]
        for name in catalogue.carriers(wish.accelerator_type)
        if name in catalogue.machines
        and wish.accelerator_count in catalogue.counts[name, wish.accelerator_type]
        and (catalogue.machines[name].vcpus or 0) >= wish.min_vcpus
        and (catalogue.machines[name].memory_gb or 0) >= wish.min_memory_gb
    ]
    return sorted(machines, key=lambda machine: (machine.vcpus or 0, machine.memory_gb or 0, machine.name))


def ladder(catalogue: Catalogue, wish: Wish, most: int = 12) -> list[Rung]:
    """Return what to try in turn: the smallest machine in the region, other regions, then other accelerators.

    Every rung is one that `check` finds no error in. Prices are not known here and play no part.
    """
    rungs: dict[Rung, None] = {}
    for accelerator in (wish.accelerator_type, *_others(catalogue, wish)):
        for rung in _rungs(catalogue, wish, accelerator):
            rungs[rung] = None
    return list(rungs)[:most]


def _rungs(catalogue: Catalogue, wish: Wish, accelerator: str) -> Iterator[Rung]:
    machines = fitting(catalogue, replace(wish, accelerator_type=accelerator))
    machines = [machine for machine in machines if machine.name != TOO_SMALL_FOR_GPUS] or machines
    entry = catalogue.accelerators[accelerator]
    if not machines or has_ended(entry, wish.today) or not entry.for_training or "required" in entry.capacity:
        return
    # Another size is another place in the stock; two more are enough to try where the first one is.
    for number, region in enumerate(_regions(catalogue, wish, accelerator)):
        for machine in machines[: 2 if number == 0 else 1]:
            for strategy in _strategies(entry.flex_start):
                yield Rung(
                    machine_type=machine.name,
                    accelerator_type=accelerator,
                    accelerator_count=wish.accelerator_count,
                    region=region,
                    scheduling_strategy=strategy,
                    remark=_remark(catalogue, accelerator, region),
                )


def _strategies(flex_start: str) -> tuple[str, ...]:
    """Return the ways to get a machine: at once, in a queue, with the risk to lose it."""
    return ("STANDARD", "FLEX_START", "SPOT") if flex_start == "yes" else ("STANDARD", "SPOT")


def _regions(catalogue: Catalogue, wish: Wish, accelerator: str) -> list[str]:
    continent = wish.region.split("-")[0]
    there = [
        entry
        for (name, _), entry in catalogue.regions.items()
        if name == accelerator and entry.training == "yes" and catalogue.training_regions.get(entry.region)
    ]
    # Where many kinds of accelerator are offered there is most to fall back to.
    kinds = Counter(entry.region for entry in catalogue.regions.values() if entry.training == "yes")
    there.sort(
        key=lambda entry: (
            entry.region != wish.region,
            entry.doubtful,
            bool(wish.region) and entry.region.split("-")[0] != continent,
            -kinds[entry.region],
            entry.region,
        )
    )
    same = [entry.region for entry in there]
    return same[:3] if accelerator == wish.accelerator_type else same[:1]


def _remark(catalogue: Catalogue, accelerator: str, region: str) -> str:
    entry = catalogue.regions[accelerator, region]
    if entry.doubtful:
        return "doubtful: Google's pages disagree"
    return "default quota 0: ask for quota first" if entry.default_quota == "0" else ""


def _others(catalogue: Catalogue, wish: Wish) -> list[str]:
    """Return the accelerators to fall back to: successors first, then those on machines most like the asked ones."""
    heirs = SUCCESSORS.get(wish.accelerator_type, ())
    here = fitting(catalogue, wish)
    size = here[0].name if here else ""
    demand = Demand(machine_type=size, accelerator_count=wish.accelerator_count, region=wish.region, today=wish.today)
    near = (*nearest.offers_like(catalogue, demand), *nearest.offers_like(catalogue, replace(demand, region="")))
    return [name for name in dict.fromkeys((*heirs, *near)) if name != wish.accelerator_type]
