"""The peak memory of steps and replicas, beside that of their machines on Vertex AI."""

import json
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from localvertex._base import linux
from localvertex.containers import memory
from localvertex.machines import load_catalogue
from localvertex.machines.catalogue import nearest
from localvertex.machines.catalogue.rows import MachineType
from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask

MB = 1 << 20

PARENT_AND_CHILDREN = """
import os, time
shared = bytearray(60 << 20)
children = []
for number in range(2):
    child = os.fork()
    if child == 0:
        own = bytearray(80 << 20)
        time.sleep(5)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""


@pytest.fixture(autouse=True)
def small_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give two machine types so little memory that a test can fill it."""
    folder = tmp_path / "catalogue"
    folder.mkdir()
    rows = ("e2-standard-4,4,0.15,cpu-only,X,X", "n1-standard-4,4,0.25,gpu-optional,X,X")
    (folder / "vertex_machine_types.csv").write_text(
        "\n".join(["machine_type,vcpus,memory_gb,kind,source,source_date", *rows])
    )
    monkeypatch.setenv("ACCELERATORS_CATALOGUE", str(folder))


@dsl.component(**STEP)
def use(megabytes: int) -> None:
    held = bytearray(megabytes << 20)
    assert held


@dsl.pipeline(name="memory")
def two_steps() -> None:
    use(megabytes=1).set_display_name("small")
    use(megabytes=200).set_display_name("large").set_retry(num_retries=0)


def test_record_report_and_warnings_name_the_peak_and_the_machine(
    execute: Execute, work_dir: Path, command: Command, compiled: Compile
) -> None:
    record = execute(two_steps, run_id="memory")
    small, large = (each["memory"] for each in record["tasks"])
    assert (small["machine_type"], small["machine_bytes"], small["severity"]) == (
        "e2-standard-4",
        int(0.15 * (1 << 30)),
        "",
    )
    assert 5 * MB < small["peak_bytes"] < 130 * MB
    assert 200 * MB < large["peak_bytes"] < 400 * MB
    assert large["severity"] == "error"
    assert "would be out of memory on Vertex AI" in large["text"]
    assert f"use-2: {large['text']}" in record["warnings"]
    assert [each for each in record["warnings"] if small["text"] in each] == []
    assert large["text"] in json.dumps(report_data(work_dir / "memory" / "run.html"))
    shown = command("show", "memory", "--work-dir", work_dir)
    assert large["text"] in shown.stdout
    assert small["text"] in shown.stdout


@pytest.mark.skipif(not linux.is_used(), reason="elsewhere only the largest process is known")
def test_processes_of_one_step_count_together_and_what_they_share_once(execute: Execute, task: FindTask) -> None:
    @dsl.component(**STEP)
    def fork(code: str) -> None:
        exec(code)

    @dsl.pipeline(name="forks")
    def forks() -> None:
        fork(code=PARENT_AND_CHILDREN)

    peak = task(execute(forks), "fork")["memory"]["peak_bytes"]
    # 60 that all share, and 80 of each child; counted per process it would be more than 340.
    assert 215 * MB < peak < 330 * MB


def test_each_replica_has_the_peak_of_its_largest_process(run: Any, message: Any) -> None:
    reported: list[str] = []
    chief = "held = bytearray(240 << 20)"
    status = run(message((chief, 1)), warn=reported.append).status.as_json()
    found = status["replicas"][0]["memory"]
    assert (found["machine_type"], found["severity"]) == ("n1-standard-4", "warning")
    assert f"workerpool0-0: {found['text']}" in reported
    assert memory.of_task({"custom_job": status}) == found


@pytest.mark.parametrize("engine", ["docker", "/usr/bin/podman"])
def test_nothing_is_said_of_processes_that_an_engine_runs(engine: str) -> None:
    assert memory.of([engine, "run"], 10 * MB, None) is None


@pytest.mark.parametrize(
    ("resources", "machine_type"),
    [
        ({}, "e2-standard-4"),
        ({"cpuLimit": 8.0}, "e2-standard-8"),
        ({"memoryLimit": 32.0}, "e2-highmem-4"),
        ({"cpuLimit": 4.0, "memoryLimit": 15.0, "resourceCpuLimit": "4"}, "e2-standard-4"),
        ({"cpuLimit": 96.0, "memoryLimit": 624.0}, "n1-highmem-96"),
        ({"memoryLimit": 20.0, "accelerator": {"type": "NVIDIA_TESLA_T4", "count": "1"}}, "n1-highmem-4"),
        ({"accelerator": {"resourceType": "NVIDIA_L4", "resourceCount": "2"}}, "g2-standard-24"),
        ({"resourceMemoryLimit": "{{$.inputs.parameters['memory']}}"}, None),
        ({"memoryLimit": 700.0}, None),
    ],
)
def test_a_step_gets_the_smallest_machine_that_has_what_it_asks_for(
    resources: dict[str, Any], machine_type: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACCELERATORS_CATALOGUE")
    found = nearest.of_step(load_catalogue(), resources)
    assert (found.name if found else None) == machine_type


@pytest.mark.parametrize(
    ("memory_gb", "peak_bytes", "text"),
    [
        (16.0, int(6.1 * 1024 * MB), "peak 6.1 of 16 GB (m)"),
        (14.4, 300 * MB, "peak 300 MB of 14.4 GB (m)"),
        (1360.0, 1300 * 1024 * MB, "peak 1300.0 of 1360 GB (m), nearly out of memory"),
        (None, 20 * 1024 * MB, "peak 20.0 GB"),
    ],
)
def test_the_figures_are_read_at_a_glance(memory_gb: float | None, peak_bytes: int, text: str) -> None:
    machine = MachineType(name="m", vcpus=4, memory_gb=memory_gb, kind="cpu-only")
    found = memory.of(["python"], peak_bytes, machine)
    assert found
    assert found["text"] == text
