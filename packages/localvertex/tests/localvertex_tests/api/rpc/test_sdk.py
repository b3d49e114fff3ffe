"""The real SDK with its default transport, in a process of its own: nothing is patched but its polling interval."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.api.rpc.clients import ROOTS, endpoint

from vertex_testing.server import Server

PROGRAM = Path(__file__).with_name("program.py")


def run(server: Server, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    address, roots = endpoint(server)
    words = tuple(word.replace("ENDPOINT", address) for word in words)
    env = os.environ | {ROOTS: roots, "PYTHONWARNINGS": "ignore"}
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, timeout=300, **options)


@pytest.mark.slow
def test_the_sdk_works_with_its_default_transport(
    start_server: Callable[..., Server], small_pipeline: Path, tmp_path: Path
) -> None:
    server = start_server()
    done = run(server, str(PROGRAM), "ENDPOINT", str(small_pipeline), str(server.work_dir), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    refusals = found.pop("refusals")
    assert found == {
        "pipelines": {
            "transport": "PipelineServiceGrpcTransport",
            "job": "PIPELINE_STATE_SUCCEEDED",
            "listed": True,
            "cancelled": "PIPELINE_STATE_CANCELLED",
            "left": 1,
        },
        "schedules": {"states": ["PAUSED", "ACTIVE"], "found": ["0 4 * * *"], "left": 0},
        "models": {
            "versions": {"1": [], "2": ["champion", "default"]},
            "listed": [["digits", "changed"]],
            "left": 0,
        },
        "custom_jobs": {"state": "JOB_STATE_SUCCEEDED", "listed": 1},
        "asynchronous": {"jobs": 1},
    }
    rest = {
        "absent": server.call("GET", "pipelineJobs/absent"),
        "filter": server.call("GET", "pipelineJobs", params={"filter": "((("}),
        "empty": server.call("POST", "pipelineJobs", {"displayName": "x"}),
        "unserved": server.call("GET", "trainingPipelines"),
    }
    errors = {name: response.json()["error"] for name, response in rest.items()}
    assert refusals == {name: [error["status"], error["message"]] for name, error in errors.items()}


@pytest.mark.slow
def test_the_page_works_as_written(
    package: Path, start_server: Callable[..., Server], light_pipeline: dict[str, Any], tmp_path: Path
) -> None:
    page = (package / "docs" / "grpc.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (lines,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    serving, exporting, running = lines.splitlines()
    assert serving == "python -m localvertex serve --port 8700"
    server = start_server()
    address, roots = endpoint(server)
    # The folder of the page is ./runs, as in the test.
    assert exporting == f'export {ROOTS}="$PWD/{Path(roots).relative_to(tmp_path)}"'
    (tmp_path / "hello.yaml").write_text(json.dumps(light_pipeline))
    # The page's port may be in use where the test runs.
    assert program.count("localhost:8701") == 1
    (tmp_path / "program.py").write_text(program.replace("localhost:8701", address))
    done = run(server, *running.split()[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "PIPELINE_STATE_SUCCEEDED"
