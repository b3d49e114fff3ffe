"""Jobs of a Python package: built, installed and run for real."""

import json
import subprocess
import sys

import pytest

from localvertex import custom_jobs
from localvertex.custom_jobs import JobState
from localvertex.errors import TaskFailed
from localvertex.processes.processes import Processes

pytestmark = pytest.mark.slow

TASK = """
import importlib.util, json, os, sys
with open(sys.argv[1], "w") as file:
    json.dump({"version": VERSION, "prefix": sys.prefix, "word": os.environ["WORD"], "args": sys.argv[2:],
               "sees_rich": importlib.util.find_spec("rich") is not None}, file)
"""


@pytest.fixture
def package(tmp_path):
    """Builds a source distribution."""

    def build(version: str):
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
def job(tmp_path):
    """A message that runs the package's module."""

    def make(uri: str) -> dict:
        package = {
            "executor_image_uri": "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17:latest",
            "package_uris": [uri],
            "python_module": "tiny_task.task",
            "args": [str(tmp_path / "told.json"), "--steps=3"],
            "env": [{"name": "WORD", "value": "hello"}],
        }
        pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "python_package_spec": package}
        return {"display_name": "packaged", "job_spec": {"worker_pool_specs": [pool]}}

    return make


def test_it_runs_from_its_package_in_an_environment_of_its_own(package, job, run, place, tmp_path):
    file = package("1.0")
    assert run(job(str(file))).state is JobState.SUCCEEDED
    told = json.loads((tmp_path / "told.json").read_text())
    assert (told["version"], told["word"], told["args"]) == ("1.0", "hello", ["--steps=3"])
    assert told["prefix"] != sys.prefix
    assert told["sees_rich"]
    assert subprocess.run([sys.executable, "-c", "import tiny_task"], capture_output=True).returncode == 1
    log = place.folder / "packages.log"
    installed = log.read_text()
    assert run(job(str(file))).state is JobState.SUCCEEDED
    assert log.read_text() == installed
    assert run(job(str(package("1.1")))).state is JobState.SUCCEEDED
    assert json.loads((tmp_path / "told.json").read_text())["version"] == "1.1"


def test_a_package_in_a_bucket_is_found_where_buckets_are_folders(package, job, tmp_path):
    bucket = tmp_path / "buckets" / "staging"
    bucket.mkdir(parents=True)
    package("1.0").rename(bucket / "tiny_task-1.0.tar.gz")
    place = custom_jobs.Place(folder=tmp_path / "job", private_dir=tmp_path, buckets=tmp_path / "buckets")

    def run(uri):
        read = custom_jobs.read(job(uri), region="us-central1", warn=lambda text: None)
        return custom_jobs.run(read, place=place, processes=Processes(grace_seconds=1))

    assert run("gs://staging/tiny_task-1.0.tar.gz").state is JobState.SUCCEEDED
    with pytest.raises(TaskFailed, match="leads out of its bucket"):
        run("gs://staging/../../secret.tar.gz")


def test_a_package_that_is_not_here_or_does_not_install_fails_the_job(job, run, tmp_path):
    with pytest.raises(TaskFailed, match=r"gs://b/x\.tar\.gz is not on this machine"):
        run(job("gs://b/x.tar.gz"))
    (tmp_path / "broken.tar.gz").write_text("no archive")
    with pytest.raises(TaskFailed, match="installing the packages failed, exit code 2"):
        run(job(str(tmp_path / "broken.tar.gz")))
