"""Custom jobs without a pipeline around them, as a server runs them; their programs are real processes."""

import threading
from pathlib import Path

import pytest

from localvertex import custom_jobs
from localvertex.processes.processes import Processes


@pytest.fixture
def message(tmp_path):
    """A CustomJob message with these programs, one a pool: (Python code, number of replicas)."""

    def make(*pools: tuple[str, int] | None, **scheduling) -> dict:
        specs = [
            {
                "machine_spec": {"machine_type": "n1-standard-4"},
                "replica_count": pool[1],
                "container_spec": {"image_uri": "gcr.io/x/y:1", "command": ["python", "-c", pool[0], str(tmp_path)]},
            }
            if pool
            else {}
            for pool in pools
        ]
        spec = {
            "worker_pool_specs": specs,
            "base_output_directory": {"output_uri_prefix": f"{tmp_path}/out"},
            "scheduling": scheduling,
        }
        return {"display_name": "test", "job_spec": spec}

    return make


@pytest.fixture
def place(tmp_path) -> custom_jobs.Place:
    """Where the test's jobs run."""
    return custom_jobs.Place(folder=tmp_path / "job", private_dir=tmp_path / "private", project="my-project")


@pytest.fixture
def run(place):
    """Runs a message to its end; the outcome and what was observed."""

    def run_(message: dict, *, cancel: threading.Event | None = None, observe=None, **options):
        job = custom_jobs.read(message, region="us-central1", warn=lambda text: None)
        return custom_jobs.run(
            job,
            place=place,
            processes=Processes(grace_seconds=1),
            observe=observe or (lambda status: None),
            cancel=cancel,
            options=custom_jobs.Options(**options),
        )

    return run_


@pytest.fixture
def log(place):
    """What the job itself said."""
    return lambda name="log.txt": (Path(place.folder) / name).read_text()
