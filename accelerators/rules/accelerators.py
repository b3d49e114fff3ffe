"""Rules about an accelerator by itself: that it exists, trains, and is still supported."""

from accelerators.catalogue import nearest
from accelerators.catalogue.catalogue import has_ended
from accelerators.catalogue.nearest import SUCCESSORS
from accelerators.rules.job import Job, Pool
from userinput.spelling import closest, listed


def check_accelerator(job: Job, pool: Pool, where: str) -> None:
    """Check that the accelerator exists and is still offered, whatever machine it is for."""
    if not pool.accelerator:
        return
    entry = job.catalogue.accelerators.get(pool.accelerator)
    place = f"{where}.accelerator_type"
    if entry is None:
        names = [name for name, known_one in job.catalogue.accelerators.items() if known_one.for_training]
        meant = _meant(pool.accelerator, names)
        hint = f"did you mean {listed(meant)}?" if meant else "names are in capitals, e.g. NVIDIA_TESLA_T4"
        message = f"{pool.accelerator!r} is not an accelerator of the API; {hint}"
        offers = successors(job, pool, meant[0]) if len(meant) == 1 else meant
        job.note("accelerator-type", "error", place, message, offers)
    elif has_ended(entry, job.today):
        message = f"{entry.name} reached its end of support on {entry.end_of_support}; the service refuses it"
        job.note("end-of-support", "error", place, message, successors(job, pool))
    elif not entry.for_training:
        message = f"{entry.name} is not offered for custom training; choose another accelerator"
        job.note("accelerator-type", "error", place, message, successors(job, pool))
    elif entry.end_of_support is not None:
        message = f"support for {entry.name} ends on {entry.end_of_support}; plan to move to {_heirs(entry.name)}"
        job.note("end-of-support", "warning", place, message)


def _heirs(name: str) -> str:
    return listed(SUCCESSORS.get(name, ("another accelerator",))[:2])


def _meant(name: str, names: list[str]) -> tuple[str, ...]:
    """Return the accelerators meant by names such as T4, nvidia-tesla-t4 or NVIDIA_TESLA_L4."""
    parts = {part for part in name.upper().replace("-", "_").split("_") if part} - {"NVIDIA", "TESLA"}
    exact = tuple(full for full in names if parts and parts <= set(full.split("_")))
    return exact or closest(name, names, 3)


def successors(job: Job, pool: Pool, accelerator: str = "") -> tuple[str, ...]:
    """Return valid choices near to a pool's machine, with another accelerator if one is named."""
    machine, count = (pool.machine.get(key) for key in ("machine_type", "accelerator_count"))
    demand = job.demand(
        machine if isinstance(machine, str) else "",
        accelerator or pool.accelerator,
        count if isinstance(count, int) and count > 0 else 1,
    )
    return nearest.combinations(job.catalogue, demand)
