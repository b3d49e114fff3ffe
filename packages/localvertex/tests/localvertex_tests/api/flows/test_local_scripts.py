"""`CustomJob.from_local_script`: the SDK packs a script, uploads it, and starts it with its requirements.

The flow is that of python-aiplatform's tests/system/aiplatform/test_custom_job.py.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.processes.test_environments import make_wheel
from localvertex_tests.support.own_environment import users_environment

from localvertex.containers.choice import Choice
from vertex_testing.server import Server

pytestmark = pytest.mark.slow

PREBUILT, CUSTOM = "us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-0:latest", "python:3.8"

SCRIPT = """\
import os, sys, tinypkg
print("found", tinypkg.VERSION, sys.argv[1:], os.environ["SETTING"], sys.prefix)
"""


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """Compare the user's packages, programs and settings before and after."""
    before = users_environment()
    yield
    assert users_environment() == before


def bucket_of(server: Server) -> Path:
    return server.work_dir / "buckets" / "staging"


def log_of(server: Server, job: Any) -> str:
    return (server.work_dir / "api" / "customJobs" / job.name / "workerpool0-0.log").read_text()


IN_SANDBOX = pytest.mark.skipif(bool(Choice().how.problem), reason=Choice().how.problem or "bubblewrap works")


@pytest.mark.parametrize(
    ("image", "where"),
    [
        pytest.param(PREBUILT, "here", id="prebuilt container"),
        pytest.param(CUSTOM, "/gcs/staging", id="custom container", marks=[IN_SANDBOX, pytest.mark.soak]),
    ],
)
def test_a_script_runs_with_its_requirements(
    cloud: Any, endpoint: Server, tmp_path: Path, image: str, where: str
) -> None:
    bucket = bucket_of(endpoint)
    bucket.mkdir(parents=True, exist_ok=True)
    wheel = Path(make_wheel(bucket, "1.0"))
    folder = str(bucket) if where == "here" else where
    (tmp_path / "script.py").write_text(SCRIPT)
    job = cloud.CustomJob.from_local_script(
        display_name="a script",
        # The SDK uploads the script with these, and not with those of `init`.
        credentials=cloud.initializer.global_config.credentials,
        script_path=str(tmp_path / "script.py"),
        container_uri=image,
        requirements=[f"tinypkg @ file://{folder}/{wheel.name}"],
        args=["--rate", "0.1"],
        environment_variables={"SETTING": "my value", "PIP_NO_INDEX": "1"},
    )
    assert list(bucket.glob("aiplatform-*-aiplatform_custom_trainer_script-0.1.tar.gz"))
    job.run()
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    assert "found 1.0 ['--rate', '0.1'] my value " in log_of(endpoint, job)


@pytest.mark.soak
def test_requirements_that_are_missing_fail_the_job_alone(cloud: Any, endpoint: Server, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    job = cloud.CustomJob.from_local_script(
        display_name="a script",
        # The SDK uploads the script with these, and not with those of `init`.
        credentials=cloud.initializer.global_config.credentials,
        script_path=str(tmp_path / "script.py"),
        container_uri=PREBUILT,
        requirements=["a-package-that-does-not-exist"],
    )
    with pytest.raises(RuntimeError, match="installing the packages failed"):
        job.run()
    assert endpoint.call("GET", f"customJobs/{job.name}").json()["state"] == "JOB_STATE_FAILED"
