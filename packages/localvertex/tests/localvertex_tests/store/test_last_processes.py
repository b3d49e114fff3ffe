"""A run whose end is recorded can be removed at once: the supervisor of its last step may still be ending."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from kfp import dsl

from localvertex.api.rest.call import Call, Location
from localvertex.commands.service import Service
from localvertex.store import run_folder
from vertex_testing.runs import Command, Execute

LOCATION = Location(project="local-project", region="us-central1")


@dsl.pipeline(name="light")
def light() -> None:
    dsl.importer(artifact_uri="/tmp", artifact_class=dsl.Dataset)


@pytest.fixture
def ending(execute: Execute, work_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of a run that is held, as by a supervisor, until a caller waits for it."""
    execute(light, run_id="one")
    with run_folder.lock(work_dir / "one") as hold:
        clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: hold.close())
        monkeypatch.setattr(run_folder, "time", clock)
        yield work_dir / "one"


def test_clean_removes_it(ending: Path, command: Command) -> None:
    done = command("clean", "one", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert not ending.exists()


def by_delete(service: Service) -> None:
    service.pipeline_jobs.delete(Call(location=LOCATION, resource_id="one", body={}, query={}))


def by_console(service: Service) -> None:
    service.pipeline_jobs.remove("one")


@pytest.mark.parametrize("remove", [by_delete, by_console])
def test_the_server_removes_it(ending: Path, work_dir: Path, remove: Callable[[Service], None]) -> None:
    service = Service(work_dir, time_factor=1, log=print)
    job = {"name": f"{LOCATION.name}/pipelineJobs/one", "createTime": "2026-01-01T00:00:00Z", "pipelineSpec": {}}
    path = work_dir / "api" / "pipelineJobs" / "one.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(job))
    remove(service)
    assert not ending.exists()


def test_a_run_that_is_running_is_not_waited_for(
    execute: Execute, command: Command, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.loads(json.dumps(execute(light, run_id="one"))) | {"state": "RUNNING"}
    (work_dir / "one" / "run.json").write_text(json.dumps(content))
    monkeypatch.setattr(run_folder, "MARGIN_SECONDS", 3600)
    with run_folder.lock(work_dir / "one"):
        done = command("clean", "one", "--yes")
    assert done.returncode == 2
    assert "it is running" in done.stderr
