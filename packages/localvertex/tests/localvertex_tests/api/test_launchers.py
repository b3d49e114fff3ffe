"""Google's own launchers, unchanged, with this server: custom job and model upload, resume and cancel."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vertex_testing.server import PARENT, Server, wait_until

pytestmark = pytest.mark.slow

PACKAGE = "google_cloud_pipeline_components.container.v1"

TOUCH_AND_WAIT = """\
import pathlib, sys, time
here = pathlib.Path(sys.argv[1])
(here / "started").open("a").write("x")
while not (here / "go").exists():
    time.sleep(0.05)
"""


@pytest.fixture
def launch(tmp_path: Path, server: Server) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a launcher with the arguments that its component passes."""
    started = []

    def start(module: str, kind: str, payload: dict[str, Any], *more: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("launcher.py")), str(server.work_dir)]
        words += [f"{PACKAGE}.{module}.launcher", "--type", kind, "--payload", json.dumps(payload)]
        words += ["--project", "local-project", "--location", "us-central1"]
        words += ["--gcp_resources", str(tmp_path / "gcp_resources"), *more]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def payload(folder: Path, **scheduling: Any) -> dict[str, Any]:
    """Build a job that shows when it has started, and ends when the test creates a file."""
    container = {"image_uri": "python:3.11", "command": ["python", "-c", TOUCH_AND_WAIT], "args": [str(folder)]}
    machine = {"machine_type": "n1-standard-4", "accelerator_type": "", "accelerator_count": 0}
    pool = {"machine_spec": machine, "replica_count": 1, "container_spec": container}
    return {"display_name": "launched", "job_spec": {"worker_pool_specs": [pool], "scheduling": scheduling}}


def state(server: Server, name: str) -> str:
    return str(server.call("GET", name.removeprefix(f"{PARENT}/")).json()["state"])


def job_name(folder: Path) -> str:
    """Return the name of the job that a launcher has recorded."""
    resources = folder / "gcp_resources"
    wait_until(lambda: resources.exists() and resources.stat().st_size)
    (resource,) = json.loads(resources.read_text())["resources"]
    assert resource["resourceType"] == "CustomJob"
    return str(resource["resourceUri"].partition("/v1/")[2])


def test_a_custom_job_is_launched_and_a_restarted_launcher_resumes_it(
    server: Server, launch: Any, tmp_path: Path
) -> None:
    first = launch("custom_job", "CustomJob", payload(tmp_path, timeout="3600s"))
    wait_until((tmp_path / "started").exists)
    name = job_name(tmp_path)
    first.kill()
    first.wait()
    second = launch("custom_job", "CustomJob", payload(tmp_path))
    # The launcher must be polling before the job may end.
    line = next(each for each in iter(second.stdout.readline, "") if "already exists" in each)
    assert name in line
    (tmp_path / "go").touch()
    output, _ = second.communicate(timeout=120)
    assert second.returncode == 0, output
    assert state(server, name) == "JOB_STATE_SUCCEEDED"
    assert (tmp_path / "started").read_text() == "x"
    found = server.call("GET", "customJobs", params={"filter": f'display_name="launched" AND name="{name}"'}).json()
    assert len(found["customJobs"]) == 1


def test_a_stopped_launcher_cancels_its_job(server: Server, launch: Any, tmp_path: Path) -> None:
    launcher = launch("custom_job", "CustomJob", payload(tmp_path))
    wait_until((tmp_path / "started").exists)
    name = job_name(tmp_path)
    # Its signal handler is installed once it polls.
    next(each for each in iter(launcher.stdout.readline, "") if "non-final state" in each)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(120) == 0
    wait_until(lambda: state(server, name) == "JOB_STATE_CANCELLED")


def test_a_model_is_uploaded_by_the_launcher(server: Server, launch: Any, tmp_path: Path) -> None:
    container = {"imageUri": "serving:1", "env": [{"name": "A", "value": "b"}]}
    (server.work_dir / "buckets" / "bucket" / "model").mkdir(parents=True)
    (server.work_dir / "buckets" / "bucket" / "model" / "weights").write_text("w")
    unmanaged = {"uri": "gs://bucket/model", "metadata": {"containerSpec": container}}
    output = {"name": "1", "type": {"schemaTitle": "google.VertexModel"}, "uri": "", "metadata": {}}
    executor_input = {
        "inputs": {"artifacts": {"unmanaged_container_model": {"artifacts": [unmanaged]}}},
        "outputs": {"artifacts": {"model": {"artifacts": [output]}}, "outputFile": str(tmp_path / "output.json")},
    }
    words = ("--executor_input", json.dumps(executor_input))
    payload = {"display_name": "launched", "labels": {}}
    # A parent without a name is none.
    first = launch("model.upload_model", "UploadModel", payload, *words, "--parent_model_name", "")
    text, _ = first.communicate(timeout=120)
    assert first.returncode == 0, text
    (artifact,) = json.loads((tmp_path / "output.json").read_text())["artifacts"]["model"]["artifacts"]
    name = artifact["metadata"]["resourceName"]
    assert name.endswith("@1")
    (operation,) = json.loads((tmp_path / "gcp_resources").read_text())["resources"]
    assert f"{PARENT}/operations/" in operation["resourceUri"]
    model = server.call("GET", name.removeprefix(f"{PARENT}/")).json()
    assert (model["displayName"], model["artifactUri"]) == ("launched", "gs://bucket/model")
    assert model["containerSpec"] == {"imageUri": "serving:1", "env": [{"name": "A", "value": "b"}]}
    again = launch(
        "model.upload_model", "UploadModel", {"display_name": "launched"}, *words, "--parent_model_name", name
    )
    text, _ = again.communicate(timeout=120)
    assert again.returncode == 0, text
    versions = server.call("GET", f"{name.removeprefix(f'{PARENT}/')}:listVersions").json()["models"]
    assert sorted(each["versionId"] for each in versions) == ["1", "2"]
