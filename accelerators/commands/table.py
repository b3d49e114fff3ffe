"""`python -m accelerators table`: what the catalogue holds, readably."""

import argparse
import json
from datetime import date
from typing import Any

from accelerators.catalogue.catalogue import Catalogue, has_ended
from accelerators.catalogue.rows import MachineType
from accelerators.columns import aligned, size
from accelerators.commands.options import add_today, known_accelerator, known_region, parser, tables
from userinput.errors import UserError
from userinput.spelling import closest

_DESCRIPTION = """\
Print which machine types custom training takes and how many of which accelerators each may have per replica.
With --accelerator also where that accelerator is offered and its default quota; with --region only what is there."""
_EPILOGUE = """\
exit code: 0, or 2 when an option is wrong

examples:
  python -m accelerators table --accelerator T4
  python -m accelerators table --machine n1-standard --region europe-west4"""

_MARKS = {"!": "! its end of support has passed", "?": "? Google's own pages disagree about this region"}


def run(arguments: list[str]) -> int:
    """Print the part of the catalogue that the arguments ask for."""
    made = parser("table", _DESCRIPTION, _EPILOGUE)
    made.add_argument("--region", metavar="R", help="only accelerators that this region offers for training")
    made.add_argument("--accelerator", metavar="A", help="only machines for it, e.g. NVIDIA_TESLA_T4 or T4")
    made.add_argument("--machine", metavar="M", help="a machine type, or the beginning of some, e.g. a2-")
    made.add_argument("--format", choices=("text", "json"), default="text", help="json is for machines")
    add_today(made)
    options = made.parse_args(arguments)
    catalogue = tables(options)
    known_region(catalogue, options.region)
    accelerator = known_accelerator(catalogue, options.accelerator) if options.accelerator else ""
    machines = _machines(catalogue, options)
    rows = [_row(catalogue, machine, accelerator, options) for machine in machines]
    rows = [row for row in rows if row["accelerators"] or not (accelerator or _asks_gpu(row, options))]
    places = _places(catalogue, accelerator) if accelerator else []
    if options.format == "json":
        print(json.dumps({"machines": rows, "regions": places, "as_of": catalogue.newest_source}, indent=2))
    else:
        _print(rows, places, accelerator, catalogue)
    return 0


def _asks_gpu(row: dict[str, Any], options: argparse.Namespace) -> bool:
    """Return whether the row is of a machine that needs an accelerator which the region lacks."""
    return bool(options.region) and row["needs_accelerator"]


def _machines(catalogue: Catalogue, options: argparse.Namespace) -> list[MachineType]:
    wanted = options.machine or ""
    found = [machine for name, machine in catalogue.machines.items() if name.startswith(wanted)]
    if not found:
        near = ", ".join(closest(wanted, catalogue.machines, 3)) or "a2-, a3-, c2-, e2-, g2-, n1-, n2-, n4-"
        raise UserError(f"--machine is {wanted!r}; no machine type for training begins so; try {near}")
    return found


def _row(catalogue: Catalogue, machine: MachineType, accelerator: str, options: argparse.Namespace) -> dict[str, Any]:
    carried = [accelerator] if accelerator else catalogue.carried_by(machine.name)
    counts = {
        name + _mark(catalogue, name, options.region, options.today or date.today()): list(valid)
        for name in carried
        if (valid := catalogue.counts.get((machine.name, name), ())) and _there(catalogue, name, options.region)
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


def _there(catalogue: Catalogue, accelerator: str, region: str | None) -> bool:
    entry = catalogue.regions.get((accelerator, region or ""))
    return not region or (entry is not None and entry.training != "no")


def _mark(catalogue: Catalogue, accelerator: str, region: str | None, today: date) -> str:
    entry = catalogue.regions.get((accelerator, region or ""))
    gone = "!" if has_ended(catalogue.accelerators[accelerator], today) else ""
    return gone + ("?" if entry is not None and entry.doubtful else "")


def _places(catalogue: Catalogue, accelerator: str) -> list[dict[str, str]]:
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


def _print(rows: list[dict[str, Any]], places: list[dict[str, str]], accelerator: str, catalogue: Catalogue) -> None:
    lines = [["machine type", "vCPUs", "GB", "accelerators (valid counts per replica)"]]
    for row in rows:
        carried = ", ".join(f"{name} {'/'.join(map(str, counts))}" for name, counts in row["accelerators"].items())
        lines.append([row["machine_type"], size(row["vcpus"]), size(row["memory_gb"]), carried or "-"])
    print("\n".join(aligned(lines, right=frozenset({1, 2}))))
    legend = [meaning for mark, meaning in _MARKS.items() if any(mark in line[-1] for line in lines[1:])]
    if legend:
        print("\n".join(("", *legend)))
    if places:
        print(f"\n{accelerator} by region")
        print("\n".join(aligned([["region", "training", "default quota"], *_place_rows(places)])))
    print(f"\nAs of {catalogue.newest_source}; not asked of the service. Your own quota decides.")


def _place_rows(places: list[dict[str, str]]) -> list[list[str]]:
    return [[place["region"], place["training"], place["default_quota"] or "?"] for place in places]
