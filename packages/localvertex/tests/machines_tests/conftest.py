"""Shared by the tests of accelerators: jobs and pools, the facts of the guides, and the program."""

import dataclasses
import datetime
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from machines_tests.seeds import INDONESIAN, Counts, resolved_counts, seed

from localvertex.machines import check_worker_pools
from localvertex.machines.__main__ import main
from vertex_testing.in_process import call

Program = Callable[..., subprocess.CompletedProcess[str]]
Pool = dict[str, Any]

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "machines"
TODAY = datetime.date(2026, 11, 20)
IMAGE = "europe-docker.pkg.dev/shop-ml/train/train:1"
MACHINE = "worker_pool_specs[0].machine_spec"


def pool(
    machine: str = "n1-standard-8", gpu: str | None = None, count: Any = None, replicas: Any = 1, **more: Any
) -> Pool:
    """Return a worker pool; None leaves a field out."""
    spec = {"machine_type": machine, "accelerator_type": gpu, "accelerator_count": count}
    machine_spec = {key: value for key, value in spec.items() if value is not None}
    fields = {"machine_spec": machine_spec, "replica_count": replicas, "container_spec": {"image_uri": IMAGE}}
    return {key: value for key, value in (fields | more).items() if value is not None}


def with_machine(pools: list[Pool], **fields: Any) -> list[Pool]:
    """Return the pools with more fields in their machine_spec."""
    return [one | {"machine_spec": one["machine_spec"] | fields} for one in pools]


T4: dict[str, Any] = {"gpu": "NVIDIA_TESLA_T4", "count": 1}
L4 = pool("g2-standard-8", "NVIDIA_L4", 1)
RESERVED = {"reservation_affinity": {"reservation_affinity_type": "ANY_RESERVATION"}}


@dataclasses.dataclass(frozen=True)
class Case:
    """A job that breaks a rule, and the expected finding."""

    pools: list[Any]
    rule: str
    severity: str
    path: str
    alternative: str
    """Part of the first alternative."""
    options: dict[str, Any]
    """Options of check_worker_pools."""

    def __str__(self) -> str:
        return f"{self.rule}-{self.severity}"


def broken(
    pools: list[Any], rule: str, severity: str, path: str, alternative: str = "no alternative", **options: Any
) -> Any:
    """Return a case as a parameter of a test."""
    case = Case(pools, rule, severity, path, alternative, {"today": TODAY} | options)
    return pytest.param(case, id=str(case))


def assert_broken(case: Case) -> None:
    """Check a job that breaks a rule and compare the first finding of this rule."""
    found = [finding for finding in check_worker_pools(case.pools, **case.options) if finding.rule == case.rule]
    assert [(finding.severity, finding.path) for finding in found[:1]] == [(case.severity, case.path)]
    assert case.alternative in (found[0].alternatives or ("no alternative",))[0]


@pytest.fixture(scope="session")
def seed_counts() -> dict[tuple[str, str], Counts]:
    """(machine, accelerator) -> valid counts: the table of the Indonesian guide, its columns resolved."""
    return resolved_counts(INDONESIAN)


@pytest.fixture(scope="session")
def seed_machines() -> dict[str, tuple[str, int]]:
    """Legacy machine name -> (accelerator, count), from the list of the guides."""
    numbers = {"Satu": 1, "Empat": 4, "Delapan": 8}
    found = re.findall(r"• (\w+): (\w+) GPU NVIDIA Tesla (\w+)", seed(INDONESIAN))
    return {name: (f"NVIDIA_TESLA_{gpu}", numbers[number]) for name, number, gpu in found}


@pytest.fixture(autouse=True)
def _no_catalogue_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCELERATORS_CATALOGUE", raising=False)


@pytest.fixture
def data() -> Path:
    """The folder of the test data."""
    return DATA


@pytest.fixture
def machines(tmp_path: Path) -> Program:
    """Calls `python -m localvertex machines ...` in an empty folder."""

    def run(
        *arguments: object, stdin: str | bytes | None = None, cwd: Path = tmp_path, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": "120", **(env or {})}
        return call(main, arguments, cwd=cwd, environment=environment, stdin=stdin, program="localvertex machines")

    return run
