"""Custom jobs without a pipeline around them, as a server runs them; their programs are real processes."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localvertex import jobs
from localvertex.processes.processes import Processes

Message = dict[str, Any]


@pytest.fixture
def message(tmp_path: Path) -> Callable[..., Message]:
    """Build a CustomJob message with these programs, one per pool: (Python code, number of replicas)."""

    def make(*pools: tuple[str, int] | None, **scheduling: Any) -> Message:
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
def workspace(tmp_path: Path) -> jobs.Workspace:
    """Return the folders in which the test's jobs run."""
    return jobs.Workspace(folder=tmp_path / "job", private_dir=tmp_path / "private", project="my-project")


@pytest.fixture
def run(workspace: jobs.Workspace) -> Callable[..., jobs.Outcome]:
    """Run a message to its end and return the outcome."""

    def run_(
        message: Message,
        *,
        cancel: threading.Event | None = None,
        observe: Callable[[jobs.JobStatus], None] = lambda status: None,
        report: Callable[[str], None] = lambda text: None,
        **options: Any,
    ) -> jobs.Outcome:
        return jobs.run_job(
            jobs.read_job(message, region="us-central1", warn=lambda text: None),
            workspace=workspace,
            processes=Processes(grace_seconds=1),
            observe=observe,
            report=report,
            cancel=cancel,
            **options,
        )

    return run_


@pytest.fixture
def log(workspace: jobs.Workspace) -> Callable[..., str]:
    """Read a log of the job, by default its own."""
    return lambda name="log.txt": (workspace.folder / name).read_text()
