"""What the guides say, read from their own rows: expected values of the tests of accelerators."""

import itertools
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from accelerators.__main__ import main
from tests.support.in_process import call

Program = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "accelerators"

# Per GPU count the vCPUs and GB of memory that it can serve at most: Compute Engine's page for N1 machines, with the
# two limits that the guides state for training (8 x K80: 208 GB, 4 x P100: 64 vCPUs and 208 GB) and T4 as 24/156,
# the only figure with which the guides' own table agrees.
LIMITS = {
    "NVIDIA_TESLA_K80": {1: (8, 52), 2: (16, 104), 4: (32, 208), 8: (64, 208)},
    "NVIDIA_TESLA_P4": {1: (24, 156), 2: (48, 312), 4: (96, 624)},
    "NVIDIA_TESLA_P100": {1: (16, 104), 2: (32, 208), 4: (64, 208)},
    "NVIDIA_TESLA_T4": {1: (24, 156), 2: (48, 312), 4: (96, 624)},
    "NVIDIA_TESLA_V100": {1: (12, 78), 2: (24, 156), 4: (48, 312), 8: (96, 624)},
}
GB_PER_VCPU = {"standard": 3.75, "highmem": 6.5, "highcpu": 0.9}
COLUMNS_JA = tuple(f"NVIDIA_TESLA_{name}" for name in ("K80", "P4", "P100", "T4", "V100"))
COLUMNS = ("NVIDIA_TESLA_A100", *COLUMNS_JA)
SEEDS = {
    "000_de20d3b8ef635f13.txt": COLUMNS_JA,
    "002_2929c6e88aa1e131.txt": COLUMNS,
    "003_cc377be172c4fa70.txt": COLUMNS,
}


def limit_counts(machine, accelerator):
    """Return the counts whose vCPU and memory limits an N1 machine keeps."""
    family, vcpus = machine.split("-")[1], int(machine.split("-")[2])
    memory_gb = vcpus * GB_PER_VCPU[family]
    return tuple(count for count, (cpu, gb) in LIMITS[accelerator].items() if vcpus <= cpu and memory_gb <= gb)


def seed_rows(name):
    """Return machine -> cells of the count table, as they stand in the document (blank cells are lost there)."""
    rows = {}
    for line in (DATA / "seeds" / name).read_text("utf-8").splitlines():
        match = re.fullmatch(r"((?:n1|a2)-\S+)((?: \d+(?:[,、] ?\d+)*)+)", line)
        if match:
            cells = re.findall(r"\d+(?:[,、] ?\d+)*", match.group(2))
            rows[match.group(1)] = [tuple(map(int, re.split(r"[,、] ?", cell))) for cell in cells]
    return rows


def possible_assignments(machine, cells, columns):
    """Return every way to give the cells to columns, in order, that the limits of the GPUs allow."""
    if machine.startswith("a2-"):
        return [{"NVIDIA_TESLA_A100": cells[0]}]  # A2 machines carry nothing else
    fitting = []
    for chosen in itertools.combinations(columns, len(cells)):
        assignment = dict(zip(chosen, cells, strict=True))
        gpus = [column for column in columns if column in LIMITS]
        if all(limit_counts(machine, gpu) == assignment.get(gpu, ()) for gpu in gpus) and set(chosen) <= set(gpus):
            fitting.append(assignment)
    return fitting


@pytest.fixture(scope="session")
def seed_counts():
    """(machine, accelerator) -> valid counts: the table of the Indonesian and Korean guides, columns resolved."""
    counts = {}
    for machine, cells in seed_rows("002_2929c6e88aa1e131.txt").items():
        (assignment,) = possible_assignments(machine, cells, COLUMNS)
        counts |= {(machine, accelerator): values for accelerator, values in assignment.items()}
    return counts


@pytest.fixture(scope="session")
def seed_machines():
    """Legacy machine name -> (accelerator, count) from the guides' list."""
    numbers = {"Satu": 1, "Empat": 4, "Delapan": 8}
    text = (DATA / "seeds" / "002_2929c6e88aa1e131.txt").read_text("utf-8")
    found = re.findall(r"• (\w+): (\w+) GPU NVIDIA Tesla (\w+)", text)
    return {name: (f"NVIDIA_TESLA_{gpu}", numbers[number]) for name, number, gpu in found}


@pytest.fixture(scope="session")
def seed_regions():
    """The regions with GPUs of the Indonesian guide."""
    text = (DATA / "seeds" / "002_2929c6e88aa1e131.txt").read_text("utf-8")
    return re.findall(r"• ([a-z]+-[a-z]+\d)\n", text)


@pytest.fixture(autouse=True)
def _no_catalogue_of_the_developer(monkeypatch):
    monkeypatch.delenv("ACCELERATORS_CATALOGUE", raising=False)


@pytest.fixture
def data():
    """The folder of the test data."""
    return DATA


@pytest.fixture
def accelerators(tmp_path: Path) -> Program:
    """Calls `python -m accelerators ...` in an empty folder."""

    def run(
        *arguments: object, stdin: str | bytes | None = None, cwd: Path = tmp_path, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": "120", **(env or {})}
        return call(main, arguments, cwd=cwd, environment=environment, stdin=stdin, program="accelerators")

    return run
