"""How GPUs are assigned, on machines whose number of GPUs comes from a substitute for nvidia-smi."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localvertex import jobs
from localvertex.containers.gpus import VARIABLE, visible_gpus
from localvertex.jobs.gpus import gpu_environments

Machine = Callable[..., None]
Jobs = Callable[..., jobs.CustomJob]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make this a machine with so many GPUs; None stands for a machine without a driver."""

    def have(count: int | None, shown: str | None = None) -> None:
        monkeypatch.delenv(VARIABLE, raising=False)
        if shown is not None:
            monkeypatch.setenv(VARIABLE, shown)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin" if count is not None else str(tmp_path))
        if count is not None:
            program = tmp_path / "nvidia-smi"
            program.write_text("#!/bin/sh\n" + "".join(f"echo {index}\n" for index in range(count)))
            program.chmod(0o755)

    return have


@pytest.fixture
def job(message: Callable[..., dict[str, Any]]) -> Jobs:
    """Build a job whose pools have (replicas, GPUs per replica)."""

    def make(*pools: tuple[int, int]) -> jobs.CustomJob:
        made = message(*[("1", num_replicas) for num_replicas, _ in pools])
        for pool, (_, num_gpus) in zip(made["job_spec"]["worker_pool_specs"], pools, strict=True):
            if num_gpus:
                pool["machine_spec"] = {
                    "machine_type": "n1-standard-16",
                    "accelerator_type": "NVIDIA_TESLA_T4",
                    "accelerator_count": num_gpus,
                }
        return jobs.read_job(made, region="us-central1", warn=lambda text: None)

    return make


def shown(job: jobs.CustomJob, warnings: list[str]) -> dict[str, str | None]:
    """Return the GPUs that each replica sees."""
    return {name: env.get(VARIABLE) for name, env in gpu_environments(job, warnings.append).items()}


def test_each_replica_sees_as_many_as_its_pool_requests(machine: Machine, job: Jobs) -> None:
    machine(4)
    warnings: list[str] = []
    assert shown(job((1, 1), (1, 2), (1, 0)), warnings) == {
        "workerpool0-0": "0",
        "workerpool1-0": "1,2",
        "workerpool2-0": "-1",
    }
    assert warnings == []


@pytest.mark.parametrize(
    ("count", "each", "words"),
    [
        (4, ["0,1", "2,3"], "this machine has 4; each replica gets 2"),
        (1, ["-1", "-1"], "this machine has 1; training on the CPU"),
        (0, [None, None], "this machine has none; training on the CPU"),
        (None, [None, None], "this machine has none; training on the CPU"),
    ],
)
def test_a_machine_with_fewer_gpus_shares_them_equally_and_warns(
    machine: Machine, job: Jobs, count: int | None, each: list[str | None], words: str
) -> None:
    machine(count)
    warnings: list[str] = []
    assert list(shown(job((1, 4), (1, 4)), warnings).values()) == each
    assert warnings == [f"the job requests 8 GPUs, {words}"]


def test_a_job_without_gpus_hides_those_of_the_machine(machine: Machine, job: Jobs) -> None:
    machine(2)
    warnings: list[str] = []
    assert list(shown(job((1, 0), (2, 0)), warnings).values()) == ["-1", "-1", "-1"]
    assert warnings == []


@pytest.mark.parametrize(
    ("variable", "gpus"), [("2,3", ["2", "3"]), ("-1", []), ("", []), (None, ["0", "1", "2", "3"])]
)
def test_the_users_own_choice_of_gpus_is_respected(machine: Machine, variable: str | None, gpus: list[str]) -> None:
    machine(4, variable)
    assert visible_gpus() == gpus


def test_a_driver_that_fails_has_no_gpus(machine: Machine, tmp_path: Path) -> None:
    machine(1)
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'Failed to initialize NVML'; exit 9\n")
    assert os.access(tmp_path / "nvidia-smi", os.X_OK)
    assert visible_gpus() == []
