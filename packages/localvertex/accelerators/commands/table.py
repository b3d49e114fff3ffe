"""`python -m accelerators table`: the contents of the catalogue as text or JSON."""

import argparse
import json
from collections.abc import Sequence
from datetime import date
from typing import Any

from accelerators.catalogue.catalogue import Catalogue, has_ended
from accelerators.catalogue.rows import MachineType
from accelerators.commands.options import add_format, add_today, known_accelerator, known_region, parser, tables
from localvertex_base.userinput import cli
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import closest

_DESCRIPTION = """\
Print the machine types for custom training, with the accelerators and counts
per replica that each supports. With --accelerator, also print the regions that
offer it and its default quota there. With --region, print only accelerators
that this region offers."""
_EPILOGUE = """\
exit codes: 0 success, 2 invalid input

examples:
  python -m accelerators table --accelerator T4
  python -m accelerators table --machine n1-standard --region europe-west4"""

_MARKS = {"!": "! support has ended", "?": "? Google's pages disagree on this region"}


def run(arguments: list[str]) -> int:
    """Print the part of the catalogue that the arguments select."""
    options = _parser().parse_args(arguments)
    catalogue = tables(options).for_prediction if options.prediction else tables(options)
    known_region(catalogue, options.region)
    accelerator = known_accelerator(catalogue, options.accelerator) if options.accelerator else ""
    rows = [_row(catalogue, machine, accelerator, options) for machine in _machines(catalogue, options.machine)]
    rows = [row for row in rows if row["accelerators"] or not (accelerator or _lacks_gpu(row, options))]
    regions = _regions(catalogue, accelerator) if accelerator else []
    if options.format == "json":
        print(json.dumps({"machines": rows, "regions": regions, "as_of": catalogue.newest_source}, indent=2))
    else:
        _print(rows, regions, accelerator, catalogue)
    return 0


def _parser() -> cli.Parser:
    made = parser("table", _DESCRIPTION, _EPILOGUE)
    made.add_argument("--region", metavar="R", help="only accelerators that this region offers for training")
    made.add_argument("--accelerator", metavar="A", help="only machines for it, e.g. NVIDIA_TESLA_T4 or T4")
    made.add_argument("--machine", metavar="M", help="machine type or a prefix, e.g. a2-")
    made.add_argument("--prediction", action="store_true", help="machines of deployed models and batch predictions")
    add_format(made)
    add_today(made)
    return made


def _lacks_gpu(row: dict[str, Any], options: argparse.Namespace) -> bool:
    """Return whether the machine needs an accelerator that the region does not offer."""
    return bool(options.region) and row["needs_accelerator"]


def _machines(catalogue: Catalogue, prefix: str | None) -> list[MachineType]:
    wanted = prefix or ""
    found = [machine for name, machine in catalogue.machines.items() if name.startswith(wanted)]
    if not found:
        near = ", ".join(closest(wanted, catalogue.machines, 3)) or "a2-, a3-, c2-, e2-, g2-, n1-, n2-, n4-"
        raise UserError(f"--machine is {wanted!r}, but no machine type starts with it; try {near}")
    return found


def _row(catalogue: Catalogue, machine: MachineType, accelerator: str, options: argparse.Namespace) -> dict[str, Any]:
    carried = [accelerator] if accelerator else catalogue.accelerators_of(machine.name)
    counts = {
        name + _mark(catalogue, name, options.region, options.today or date.today()): list(valid)
        for name in carried
        if (valid := catalogue.counts.get((machine.name, name), ())) and _is_offered(catalogue, name, options.region)
    }
    return {
        "machine_type": machine.name,
        "vcpus": machine.vcpus,
        "memory_gb": machine.memory_gb,
        "needs_accelerator": machine.kind in ("gpu-only", "tpu-only"),
        "accelerators": counts,
        "source": machine.source,
        "source_date": machine.source_date,
        "confidence": machine.confidence,
    }


def _is_offered(catalogue: Catalogue, accelerator: str, region: str | None) -> bool:
    entry = catalogue.regions.get((accelerator, region or ""))
    return not region or (entry is not None and entry.training != "no")


def _mark(catalogue: Catalogue, accelerator: str, region: str | None, today: date) -> str:
    entry = catalogue.regions.get((accelerator, region or ""))
    ended = "!" if has_ended(catalogue.accelerators[accelerator], today) else ""
    return ended + ("?" if entry is not None and entry.doubtful else "")


def _regions(catalogue: Catalogue, accelerator: str) -> list[dict[str, str]]:
    return [
        {
            "region": entry.region,
            "training": "doubtful" if entry.doubtful else entry.training,
            "default_quota": entry.default_quota,
            "source_date": entry.source_date,
            "confidence": entry.confidence,
        }
        for (name, _), entry in sorted(catalogue.regions.items())
        if name == accelerator
    ]


def _print(rows: list[dict[str, Any]], regions: list[dict[str, str]], accelerator: str, catalogue: Catalogue) -> None:
    lines = [["machine type", "vCPUs", "GB", "accelerators (valid counts per replica)"]]
    for row in rows:
        carried = ", ".join(f"{name} {'/'.join(map(str, counts))}" for name, counts in row["accelerators"].items())
        lines.append([row["machine_type"], size(row["vcpus"]), size(row["memory_gb"]), carried or "-"])
    print("\n".join(align(lines, right=frozenset({1, 2}))))
    legend = [meaning for mark, meaning in _MARKS.items() if any(mark in line[-1] for line in lines[1:])]
    if legend:
        print("\n".join(("", *legend)))
    if regions:
        print(f"\n{accelerator} by region")
        cells = [[region["region"], region["training"], region["default_quota"] or "?"] for region in regions]
        print("\n".join(align([["region", "training", "default quota"], *cells])))
    print(f"\n{as_of(catalogue)}")


def as_of(catalogue: Catalogue) -> str:
    """Return the sentence on the age of the tables that ends every printed table."""
    return f"As of {catalogue.newest_source}; the service was not queried. Your own quota decides."


def align(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Return the rows as lines with columns of equal width; the columns in `right` are right-aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def size(value: float | None) -> str:
    """Return 14.4 as "14.4", 60.0 as "60" and None as "?"."""
    return "?" if value is None else f"{value:g}"
