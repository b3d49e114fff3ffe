"""`python -m accelerators suggest`: the machines for an accelerator and what to fall back to."""

import argparse
import json
import math
from dataclasses import asdict, replace
from datetime import date

from accelerators.catalogue import nearest
from accelerators.catalogue.catalogue import Catalogue, has_ended
from accelerators.catalogue.fallbacks import Rung, Wish, fitting, ladder
from accelerators.catalogue.rows import MachineType
from accelerators.columns import aligned, size
from accelerators.commands.options import add_today, known_accelerator, known_region, parser, tables
from userinput.errors import UserError

_DESCRIPTION = """\
List the machine types that carry so many accelerators per replica, smallest first, and an ordered list of
(machine, accelerator, region, scheduling strategy) to try when one is out of stock.
There is no price data here: the order is by size and by how near the choice is to what was asked for."""
_EPILOGUE = """\
exit code: 0 something fits, 1 nothing fits (the nearest is printed), 2 an option is wrong

examples:
  python -m accelerators suggest --accelerator NVIDIA_L4 --count 2
  python -m accelerators suggest --accelerator T4 --count 1 --memory-gb 30 --region europe-west1"""


def run(arguments: list[str]) -> int:
    """Print the machines that fit and what to fall back to."""
    options = _parser().parse_args(arguments)
    catalogue = tables(options)
    wish = Wish(
        accelerator_type=known_accelerator(catalogue, options.accelerator),
        accelerator_count=options.count,
        min_vcpus=options.vcpus,
        min_memory_gb=options.memory_gb,
        region=known_region(catalogue, options.region),
        today=options.today or date.today(),
    )
    entry = catalogue.accelerators[wish.accelerator_type]
    if not entry.is_gpu:
        raise UserError(f"{entry.name} is a TPU; the tables here say only which GPUs a machine takes")
    if has_ended(entry, wish.today):
        heirs = " or ".join(nearest.SUCCESSORS.get(entry.name, ())[:2]) or "another accelerator"
        raise UserError(f"{entry.name} reached its end of support on {entry.end_of_support}; ask for {heirs}")
    machines, rungs = fitting(catalogue, wish), ladder(catalogue, wish, options.limit)
    if options.format == "json":
        names = [machine.name for machine in machines]
        print(json.dumps({"machines": names, "fall_back": [asdict(rung) for rung in rungs]}, indent=2))
    elif machines:
        _print(machines, rungs, wish, catalogue)
    else:
        _print_nothing(catalogue, wish)
    return 0 if machines else 1


def _parser() -> argparse.ArgumentParser:
    made = parser("suggest", _DESCRIPTION, _EPILOGUE)
    made.add_argument("--accelerator", required=True, metavar="A", help="e.g. NVIDIA_L4, nvidia-tesla-t4 or T4")
    made.add_argument("--count", type=_count, default=1, metavar="N", help="accelerators per replica (default 1)")
    made.add_argument("--memory-gb", type=_amount, default=0.0, metavar="N", help="at least so much memory")
    made.add_argument("--vcpus", type=_amount, default=0.0, metavar="N", help="at least so many vCPUs")
    made.add_argument("--region", metavar="R", help="where it should run")
    made.add_argument("--limit", type=_count, default=12, metavar="N", help="length of the fall-back list (default 12)")
    made.add_argument("--format", choices=("text", "json"), default="text", help="json is for machines")
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


def _print(machines: list[MachineType], rungs: list[Rung], wish: Wish, catalogue: Catalogue) -> None:
    print(f"machines with {wish.accelerator_count} x {wish.accelerator_type} per replica, smallest first")
    rows = [["machine type", "vCPUs", "GB"]]
    rows += [[machine.name, size(machine.vcpus), size(machine.memory_gb)] for machine in machines]
    print("\n".join(aligned(rows, right=frozenset({1, 2}))))
    here = catalogue.regions.get((wish.accelerator_type, wish.region))
    if wish.region and (here is None or here.training != "yes"):
        print(f"\n{wish.accelerator_type} is not offered for training in {wish.region}; the list starts elsewhere")
    capacity = catalogue.accelerators[wish.accelerator_type].capacity
    if capacity:
        print(f"\n{wish.accelerator_type}: {capacity}")
    print("\nto try in this order (no price data: compare prices yourself)")
    steps = [
        [
            f"{number}.",
            rung.machine_type,
            f"{rung.accelerator_count} x {rung.accelerator_type}",
            rung.region,
            rung.scheduling_strategy,
            rung.remark,
        ]
        for number, rung in enumerate(rungs, start=1)
    ]
    print("\n".join(aligned(steps, right=frozenset({0}))) if steps else "nothing is offered for training anywhere")
    print(f"\nAs of {catalogue.newest_source}; not asked of the service. Your own quota decides.")


def _print_nothing(catalogue: Catalogue, wish: Wish) -> None:
    pairs = [(machine, wish.accelerator_type) for machine in catalogue.carriers(wish.accelerator_type)]
    counts = sorted({count for pair in pairs for count in catalogue.counts[pair]})
    if wish.accelerator_count not in counts:
        valid = ", ".join(map(str, counts)) or "none"
        print(f"no machine takes {wish.accelerator_count} x {wish.accelerator_type}; valid counts: {valid}")
        return
    largest = fitting(catalogue, replace(wish, min_vcpus=0, min_memory_gb=0))[-1]
    asked = [f"{size(wish.min_vcpus)} vCPUs"] * bool(wish.min_vcpus)
    asked += [f"{size(wish.min_memory_gb)} GB"] * bool(wish.min_memory_gb)
    print(
        f"no machine with {wish.accelerator_count} x {wish.accelerator_type} has {' and '.join(asked)}; "
        f"the largest is {largest.name} with {size(largest.vcpus)} vCPUs and {size(largest.memory_gb)} GB"
    )
