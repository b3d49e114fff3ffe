"""The count tables of the guides, read from their own rows: expected values of the tests of accelerators."""

import functools
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

Counts = tuple[int, ...]

SEEDS = Path(__file__).parents[2] / "tests" / "data" / "machines" / "seeds"

# GPU -> count -> (vCPUs, GB) that the count can serve at most: Compute Engine's page for N1 machines, with the two
# limits that the guides state for training (8 x K80: 208 GB, 4 x P100: 64 vCPUs and 208 GB). T4 has 24/156, the only
# figure that agrees with the table of the guides.
LIMITS: dict[str, dict[int, tuple[int, int]]] = {
    "NVIDIA_TESLA_K80": {1: (8, 52), 2: (16, 104), 4: (32, 208), 8: (64, 208)},
    "NVIDIA_TESLA_P4": {1: (24, 156), 2: (48, 312), 4: (96, 624)},
    "NVIDIA_TESLA_P100": {1: (16, 104), 2: (32, 208), 4: (64, 208)},
    "NVIDIA_TESLA_T4": {1: (24, 156), 2: (48, 312), 4: (96, 624)},
    "NVIDIA_TESLA_V100": {1: (12, 78), 2: (24, 156), 4: (48, 312), 8: (96, 624)},
}
GB_PER_VCPU = {"standard": 3.75, "highmem": 6.5, "highcpu": 0.9}
COLUMNS_JA = tuple(f"NVIDIA_TESLA_{name}" for name in ("K80", "P4", "P100", "T4", "V100"))
COLUMNS = ("NVIDIA_TESLA_A100", *COLUMNS_JA)
INDONESIAN = "002_2929c6e88aa1e131.txt"
GUIDES = {"000_de20d3b8ef635f13.txt": COLUMNS_JA, INDONESIAN: COLUMNS, "003_cc377be172c4fa70.txt": COLUMNS}
"""File name of each guide -> columns of its count table."""


def seed(name: str) -> str:
    return (SEEDS / name).read_text("utf-8")


@functools.cache
def limit_counts(machine: str, accelerator: str) -> Counts:
    """Return the counts whose vCPU and memory limits cover an N1 machine."""
    family, vcpus = machine.split("-")[1], int(machine.split("-")[2])
    memory_gb = vcpus * GB_PER_VCPU[family]
    return tuple(count for count, (cpu, gb) in LIMITS[accelerator].items() if vcpus <= cpu and memory_gb <= gb)


def seed_rows(name: str) -> dict[str, list[Counts]]:
    """Return machine -> cells of the count table of a guide, in which blank cells are lost."""
    rows = {}
    for line in seed(name).splitlines():
        match = re.fullmatch(r"((?:n1|a2)-\S+)((?: \d+(?:[,、] ?\d+)*)+)", line)
        if match:
            cells = re.findall(r"\d+(?:[,、] ?\d+)*", match.group(2))
            rows[match.group(1)] = [tuple(map(int, re.split(r"[,、] ?", cell))) for cell in cells]
    return rows


def possible_assignments(machine: str, cells: Sequence[Counts], columns: Sequence[str]) -> list[dict[str, Counts]]:
    """Return every way to assign the cells to columns, in order, that the limits of the GPUs allow."""
    if machine.startswith("a2-"):
        return [{"NVIDIA_TESLA_A100": cells[0]}]  # A2 machines support nothing else
    fitting = []
    for chosen in itertools.combinations(columns, len(cells)):
        assignment = dict(zip(chosen, cells, strict=True))
        gpus = [column for column in columns if column in LIMITS]
        if all(limit_counts(machine, gpu) == assignment.get(gpu, ()) for gpu in gpus) and set(chosen) <= set(gpus):
            fitting.append(assignment)
    return fitting


def resolved_counts(name: str) -> dict[tuple[str, str], Counts]:
    """Return (machine, accelerator) -> valid counts for the table of a guide, if it has a single reading."""
    counts = {}
    for machine, cells in seed_rows(name).items():
        (assignment,) = possible_assignments(machine, cells, GUIDES[name])
        counts |= {(machine, accelerator): values for accelerator, values in assignment.items()}
    return counts
