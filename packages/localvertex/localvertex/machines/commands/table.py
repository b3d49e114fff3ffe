"""`python -m localvertex machines table`: the contents of the catalogue."""

from collections.abc import Sequence
from datetime import date

from localvertex._base.userinput import cli
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import closest
from localvertex.machines.catalogue.catalogue import Catalogue, has_ended, load_catalogue
from localvertex.machines.catalogue.rows import MachineType
from localvertex.machines.commands.options import known_accelerator, known_region

_DESCRIPTION = """\
Print the machine types for custom training, with the accelerators and counts
per replica that each supports. With --accelerator, also print the regions that
offer it and its default quota there. With --region, print only accelerators
that this region offers."""
_EPILOGUE = """\
exit codes: 0 success, 2 invalid input

examples:
  python -m localvertex machines table --accelerator T4
  python -m localvertex machines table --machine n1-standard --region europe-west4"""

_MARKS = {"!": "! support has ended", "?": "? Google's pages disagree on this region"}


def run(arguments: list[str]) -> int:
    """Print the part of the catalogue that the arguments select."""
    options = _parser().parse_args(arguments)
    catalogue = load_catalogue().for_prediction if options.prediction else load_catalogue()
    region = known_region(catalogue, options.region)
    accelerator = known_accelerator(catalogue, options.accelerator) if options.accelerator else ""
    lines = [["machine type", "vCPUs", "GB", "accelerators (valid counts per replica)"]]
    for machine in _machines(catalogue, options.machine or ""):
        carried = _carried(catalogue, machine, accelerator, region)
        needs_one = bool(accelerator) or (bool(region) and machine.kind in ("gpu-only", "tpu-only"))
        if carried or not needs_one:
            lines.append([machine.name, _size(machine.vcpus), _size(machine.memory_gb), carried or "-"])
    _print(lines, right=frozenset({1, 2}))
    legend = [meaning for mark, meaning in _MARKS.items() if any(mark in line[-1] for line in lines[1:])]
    print("\n".join(["", *legend, ""]) if legend else "")
    if accelerator:
        print(f"{accelerator} by region")
        offers = [entry for (name, _), entry in sorted(catalogue.regions.items()) if name == accelerator]
        cells = [[each.region, "doubtful" if each.doubtful else each.training, each.default_quota] for each in offers]
        _print([["region", "training", "default quota"], *([*cell[:2], cell[2] or "?"] for cell in cells)])
        print()
    print(f"As of {catalogue.newest_source}; the service was not queried. Your own quota decides.")
    return cli.DONE


def _parser() -> cli.Parser:
    made = cli.Parser("python -m localvertex machines table", description=_DESCRIPTION, epilog=_EPILOGUE)
    made.add_argument("--region", metavar="R", help="only accelerators that this region offers for training")
    made.add_argument("--accelerator", metavar="A", help="only machines for it, e.g. NVIDIA_TESLA_T4 or T4")
    made.add_argument("--machine", metavar="M", help="machine type or a prefix, e.g. a2-")
    made.add_argument("--prediction", action="store_true", help="machines of deployed models and batch predictions")
    return made


def _machines(catalogue: Catalogue, prefix: str) -> list[MachineType]:
    found = [machine for name, machine in catalogue.machines.items() if name.startswith(prefix)]
    if not found:
        near = ", ".join(closest(prefix, catalogue.machines, 3)) or "a2-, a3-, c2-, e2-, g2-, n1-, n2-, n4-"
        raise UserError(f"--machine is {prefix!r}, but no machine type starts with it; try {near}")
    return found


def _carried(catalogue: Catalogue, machine: MachineType, accelerator: str, region: str) -> str:
    """Return the accelerators of a machine that the region offers, with their marks and valid counts."""
    texts = []
    for name in [accelerator] if accelerator else catalogue.accelerators_of(machine.name):
        counts, entry = catalogue.counts.get((machine.name, name), ()), catalogue.regions.get((name, region))
        if counts and (not region or (entry is not None and entry.training != "no")):
            ended = "!" if has_ended(catalogue.accelerators[name], date.today()) else ""
            doubtful = "?" if entry is not None and entry.doubtful else ""
            texts.append(f"{name}{ended}{doubtful} {'/'.join(map(str, counts))}")
    return ", ".join(texts)


def _print(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> None:
    """Print rows with columns of equal width; the columns in `right` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        texts = (cell.rjust(n) if at in right else cell.ljust(n) for at, (cell, n) in enumerate(cells))
        print("  ".join(texts).rstrip())


def _size(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"
