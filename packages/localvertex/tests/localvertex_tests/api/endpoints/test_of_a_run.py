"""A step deploys a model through the endpoint of its run, whose end is the end of the model's process."""

import os
import signal
from pathlib import Path

import psutil
import pytest
from kfp import dsl
from localvertex_tests.support import serving

from localvertex.store import registry
from vertex_testing.processes import command_line, has_ended, with_own_id
from vertex_testing.runs import STEP, Execute, StartRun
from vertex_testing.server import wait_until

MODEL = {
    "display_name": "served",
    "container_spec": {
        "image_uri": "serving:1",
        "command": ["python", "-P", serving.__file__],
        "health_route": "/health",
        "predict_route": "/predict",
    },
}


@dsl.component(**STEP)
def deploy(folder: str, waits: bool) -> str:
    """Deploy the model `served`, request a prediction, and write the id of the process that answered."""
    import json
    import os
    import time
    import urllib.request
    from pathlib import Path

    found = json.loads(Path(os.environ["LOCALVERTEX_ENDPOINT"]).read_text())
    parent = "projects/local-project/locations/us-central1"
    headers = {"Authorization": f"Bearer {found['token']}", "Content-Type": "application/json"}

    def post(path: str, body: dict) -> dict:
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{found['address']}/v1/{path}", data, headers)
        return json.loads(urllib.request.urlopen(request).read())

    endpoint = post(f"{parent}/endpoints", {"displayName": "live"})["response"]["name"]
    resources = {"machineSpec": {"machineType": "n1-standard-2"}, "minReplicaCount": 1}
    deployed = {"model": f"{parent}/models/served", "dedicatedResources": resources}
    post(f"{endpoint}:deployModel", {"deployedModel": deployed, "trafficSplit": {"0": 100}})
    answer = post(f"{endpoint}:predict", {"instances": [1]})["predictions"][0]
    part = Path(folder, "part")
    part.write_text(answer["by"]["pid"])
    part.rename(Path(folder, "pid"))
    if waits:
        time.sleep(600)
    return endpoint


@dsl.pipeline(name="deploys")
def deploys(folder: str, waits: bool) -> None:
    deploy(folder=folder, waits=waits)


def process_in(folder: Path) -> psutil.Process:
    wait_until((folder / "pid").exists)
    return with_own_id(int((folder / "pid").read_text()), psutil.Process().children(recursive=True))


@pytest.mark.slow
def test_the_process_of_a_deployed_model_ends_with_the_run(execute: Execute, tmp_path: Path, work_dir: Path) -> None:
    registry.add(work_dir, MODEL)
    record = execute(deploys, {"folder": str(tmp_path), "waits": False})
    assert record["state"] == "SUCCEEDED", record["error"]
    left = psutil.Process().children(recursive=True)
    assert not [each for each in left if serving.__file__ in command_line(each)]
    (file,) = (work_dir / "endpoints").glob("*/endpoint.json")
    assert '"modelVersionId": "1"' in file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.soak), signal.SIGTERM])
def test_no_process_outlives_a_run_that_is_stopped(
    start_run: StartRun, tmp_path: Path, work_dir: Path, number: signal.Signals
) -> None:
    registry.add(work_dir, MODEL)
    run = start_run(deploys, "--parameter", f"folder={tmp_path}", "--parameter", "waits=true")
    process = process_in(tmp_path)
    os.kill(run.pid, number)
    run.communicate(timeout=60)
    wait_until(lambda: has_ended(process))
