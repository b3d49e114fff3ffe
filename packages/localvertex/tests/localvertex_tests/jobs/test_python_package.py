"""Jobs of a Python package that is really built, installed and run."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localvertex import jobs
from localvertex.errors import TaskFailed
from localvertex.jobs import JobState
from localvertex.processes.processes import Processes

pytestmark = pytest.mark.slow

Packages = Callable[[str], Path]
Messages = Callable[[str], dict[str, Any]]
Run = Callable[[dict[str, Any]], jobs.Outcome]

TASK = """
import importlib.util, json, os, sys
with open(sys.argv[1], "w") as file:
    json.dump({"version": VERSION, "prefix": sys.prefix, "word": os.environ["WORD"], "args": sys.argv[2:],
               "sees_rich": importlib.util.find_spec("rich") is not None}, file)
"""


@pytest.fixture
def package(tmp_path: Path) -> Packages:
    """Build a source distribution."""

    def build(version: str) -> Path:
        source = tmp_path / f"source-{version}"
        (source / "tiny_task").mkdir(parents=True)
        (source / "tiny_task" / "__init__.py").touch()
        (source / "tiny_task" / "task.py").write_text(f"VERSION = {version!r}\n{TASK}")
        (source / "README").touch()
        setup = f"from setuptools import setup\nsetup(name='tiny-task', version={version!r}, packages=['tiny_task'])\n"
        (source / "setup.py").write_text(setup)
        subprocess.run([sys.executable, "setup.py", "-q", "sdist"], cwd=source, check=True, capture_output=True)
        return source / "dist" / f"tiny_task-{version}.tar.gz"

    return build


@pytest.fixture
def job(tmp_path: Path) -> Messages:
    """Build a message that runs the package's module."""

    def make(uri: str) -> dict[str, Any]:
        package = {
            "executor_image_uri": "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17:latest",
            "package_uris": [uri],
            "python_module": "tiny_task.task",
            "args": [str(tmp_path / "seen.json"), "--steps=3"],
            "env": [{"name": "WORD", "value": "hello"}],
        }
        pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "python_package_spec": package}
        return {"display_name": "packaged", "job_spec": {"worker_pool_specs": [pool]}}

    return make


def test_it_runs_from_its_package_in_its_own_environment(
    package: Packages, job: Messages, run: Run, workspace: jobs.Workspace, tmp_path: Path
) -> None:
    file = package("1.0")
    assert run(job(str(file))).state is JobState.SUCCEEDED
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert (seen["version"], seen["word"], seen["args"]) == ("1.0", "hello", ["--steps=3"])
    assert seen["prefix"] != sys.prefix
    assert seen["sees_rich"]
    assert subprocess.run([sys.executable, "-c", "import tiny_task"], capture_output=True).returncode == 1
    log = workspace.folder / "packages.log"
    installed = log.read_text()
    assert run(job(str(file))).state is JobState.SUCCEEDED
    assert log.read_text() == installed
    assert run(job(str(package("1.1")))).state is JobState.SUCCEEDED
    assert json.loads((tmp_path / "seen.json").read_text())["version"] == "1.1"


def test_a_package_in_a_bucket_is_found_where_buckets_are_folders(
    package: Packages, job: Messages, tmp_path: Path
) -> None:
    bucket = tmp_path / "buckets" / "staging"
    bucket.mkdir(parents=True)
    package("1.0").rename(bucket / "tiny_task-1.0.tar.gz")
    workspace = jobs.Workspace(folder=tmp_path / "job", private_dir=tmp_path, buckets=tmp_path / "buckets")

    def run(uri: str) -> jobs.Outcome:
        read = jobs.read_job(job(uri), region="us-central1", warn=lambda text: None)
        return jobs.run_job(read, workspace=workspace, processes=Processes(grace_seconds=1))

    assert run("gs://staging/tiny_task-1.0.tar.gz").state is JobState.SUCCEEDED
    with pytest.raises(TaskFailed, match="points outside its bucket"):
        run("gs://staging/../../secret.tar.gz")


def test_a_package_that_is_missing_or_does_not_install_fails_the_job(job: Messages, run: Run, tmp_path: Path) -> None:
    with pytest.raises(TaskFailed, match=r"gs://b/x\.tar\.gz is not on this machine"):
        run(job("gs://b/x.tar.gz"))
    (tmp_path / "broken.tar.gz").write_text("no archive")
    with pytest.raises(TaskFailed, match="installing the packages failed with exit code 2"):
        run(job(str(tmp_path / "broken.tar.gz")))
