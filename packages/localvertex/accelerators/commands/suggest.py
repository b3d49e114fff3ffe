"""`python -m accelerators suggest`: the machines for an accelerator and what to fall back to."""

import argparse
import json
import math
from dataclasses import asdict, replace
from datetime import date

from accelerators.catalogue.catalogue import Catalogue, has_ended
from accelerators.catalogue.fallbacks import Candidate, Requirements, fallbacks, fitting
from accelerators.catalogue.nearest import SUCCESSORS
from accelerators.catalogue.rows import Accelerator, MachineType
from accelerators.commands.options import add_format, add_today, known_accelerator, known_region, parser, tables
from accelerators.commands.table import align, as_of, size
from localvertex_base.userinput import cli
from localvertex_base.userinput.errors import UserError

_DESCRIPTION = """\
List the machine types that support a number of accelerators per replica,
smallest first, and what to try when one is out of stock: an ordered list of
machine, accelerator, region and scheduling strategy. Prices are not known, so
candidates are ordered by size and by similarity to the request."""
_EPILOGUE = """\
exit codes: 0 a machine fits, 1 no machine fits (the nearest is printed),
2 invalid input

examples:
  python -m accelerators suggest --accelerator NVIDIA_L4 --count 2
  python -m accelerators suggest --accelerator T4 --region europe-west1"""


def run(arguments: list[str]) -> int:
    """Print the machines that fit and what to fall back to."""
    options = _parser().parse_args(arguments)
    catalogue = tables(options)
    requirements = Requirements(
        accelerator_type=known_accelerator(catalogue, options.accelerator),
        accelerator_count=options.count,
        min_vcpus=options.vcpus,
        min_memory_gb=options.memory_gb,
        region=known_region(catalogue, options.region),
        today=options.today or date.today(),
    )
    _refuse_unusable(catalogue.accelerators[requirements.accelerator_type], requirements.today)
    machines, candidates = fitting(catalogue, requirements), fallbacks(catalogue, requirements, options.limit)
    if options.format == "json":
        names = [machine.name for machine in machines]
        print(json.dumps({"machines": names, "fall_back": [asdict(one) for one in candidates]}, indent=2))
    elif machines:
        _print_machines(machines, requirements)
        _print_candidates(candidates, requirements, catalogue)
    else:
        _print_nearest(catalogue, requirements)
    return 0 if machines else 1


def _parser() -> cli.Parser:
    made = parser("suggest", _DESCRIPTION, _EPILOGUE)
    made.add_argument("--accelerator", required=True, metavar="A", help="e.g. NVIDIA_L4, nvidia-tesla-t4 or T4")
    made.add_argument("--count", type=_count, default=1, metavar="N", help="accelerators per replica (default: 1)")
    made.add_argument("--memory-gb", type=_amount, default=0.0, metavar="N", help="minimum memory in GB (default: 0)")
    made.add_argument("--vcpus", type=_amount, default=0.0, metavar="N", help="minimum number of vCPUs (default: 0)")
    made.add_argument("--region", metavar="R", help="preferred region")
    made.add_argument(
        "--limit", type=_count, default=12, metavar="N", help="maximum number of candidates (default: 12)"
    )
    add_format(made)
    add_today(made)
    return made


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
    return int(text)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return value


def _refuse_unusable(entry: Accelerator, today: date) -> None:
    if not entry.is_gpu:
        raise UserError(f"{entry.name} is a TPU; the tables only contain the GPUs of a machine type, so give a GPU")
    if has_ended(entry, today):
        successors = " or ".join(SUCCESSORS.get(entry.name, ())[:2]) or "another accelerator"
        raise UserError(f"{entry.name} reached its end of support on {entry.end_of_support}; use {successors}")


def _print_machines(machines: list[MachineType], requirements: Requirements) -> None:
    print(f"machines with {_gpus(requirements)} per replica, smallest first")
    rows = [["machine type", "vCPUs", "GB"]]
    rows += [[machine.name, size(machine.vcpus), size(machine.memory_gb)] for machine in machines]
    print("\n".join(align(rows, right=frozenset({1, 2}))))


def _print_candidates(candidates: list[Candidate], requirements: Requirements, catalogue: Catalogue) -> None:
    accelerator, region = requirements.accelerator_type, requirements.region
    offer = catalogue.regions.get((accelerator, region))
    if region and (offer is None or offer.training != "yes"):
        print(f"\n{accelerator} is not offered for training in {region}; the candidates are in other regions")
    capacity = catalogue.accelerators[accelerator].capacity
    if capacity:
        print(f"\n{accelerator}: {capacity}")
    print("\ncandidates in the order to try (prices are not known: compare them yourself)")
    rows = [
        [f"{number}.", one.machine_type, _gpus(one), one.region, one.scheduling_strategy, one.remark]
        for number, one in enumerate(candidates, start=1)
    ]
    print("\n".join(align(rows, right=frozenset({0}))) if rows else "no region offers any of them for training")
    print(f"\n{as_of(catalogue)}")


def _gpus(request: Requirements | Candidate) -> str:
    return f"{request.accelerator_count} x {request.accelerator_type}"


def _print_nearest(catalogue: Catalogue, requirements: Requirements) -> None:
    accelerator = requirements.accelerator_type
    machines = catalogue.machines_with(accelerator)
    counts = sorted({count for machine in machines for count in catalogue.counts[machine, accelerator]})
    if requirements.accelerator_count not in counts:
        valid = ", ".join(map(str, counts)) or "none"
        print(f"no machine type supports {_gpus(requirements)}; valid counts: {valid}")
        return
    largest = fitting(catalogue, replace(requirements, min_vcpus=0, min_memory_gb=0))[-1]
    minimum = [f"{size(requirements.min_vcpus)} vCPUs"] * bool(requirements.min_vcpus)
    minimum += [f"{size(requirements.min_memory_gb)} GB"] * bool(requirements.min_memory_gb)
    print(
        f"no machine type with {_gpus(requirements)} has {' and '.join(minimum)}; "
        f"the largest is {largest.name} with {size(largest.vcpus)} vCPUs and {size(largest.memory_gb)} GB"
    )
