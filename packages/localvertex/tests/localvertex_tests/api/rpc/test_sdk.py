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

from localvertex import client
from localvertex._base.userinput.errors import UserError
from localvertex.api.access import token_file
from localvertex.store import run_folder
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
        "other_jobs": {
            "pipeline": ["PIPELINE_STATE_SUCCEEDED", "trained", "1"],
            "tuning": ["JOB_STATE_SUCCEEDED", ["SUCCEEDED", "SUCCEEDED"]],
            "prediction": ["JOB_STATE_SUCCEEDED", 1],
            "listed": [1, 1, 1],
            "left": [0, 0, 0],
        },
        "asynchronous": {"jobs": 1},
    }
    rest = {
        "absent": server.call("GET", "pipelineJobs/absent"),
        "filter": server.call("GET", "pipelineJobs", params={"filter": "((("}),
        "empty": server.call("POST", "pipelineJobs", {"displayName": "x"}),
        "unserved": server.call("GET", "datasets"),
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


AS_ON_VERTEX = """
from google.api_core import exceptions
from google.cloud import aiplatform
from localvertex import client

client.init(WORK_DIR)
context = aiplatform.Context.create("system.Experiment", resource_id="once")
print(type(context.api_client.transport).__name__)
parent, body = context.resource_name.partition("/contexts/")[0], {"schema_title": "system.Experiment"}
for call in (
    lambda: context.api_client.create_context(parent=parent, context=body, context_id="once"),
    lambda: context.api_client.create_context(parent=parent, context=body, context_id="no id"),
    lambda: context.api_client.update_context(context={"name": context.resource_name, "etag": "1"}),
):
    try:
        call()
    except exceptions.GoogleAPICallError as error:
        print(type(error).__name__)
job = aiplatform.PipelineJob("job", COMPILED, pipeline_root="/unused", job_id="joined")
job.submit(experiment="once")
print(aiplatform.get_experiment_df("once").run_name[0])
client.init(WORK_DIR, api_transport="rest")
print(type(aiplatform.Context("once").api_client.transport).__name__)
"""


@pytest.mark.slow
def test_grpc_is_the_default_and_errors_have_the_classes_of_the_service(
    start_server: Callable[..., Server], small_pipeline: Path
) -> None:
    server = start_server()
    program = AS_ON_VERTEX.replace("WORK_DIR", repr(str(server.work_dir))).replace(
        "COMPILED", repr(str(small_pipeline))
    )
    env = {name: text for name, text in os.environ.items() if name != ROOTS} | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.isidentifier()]
    transport, *errors, run, other = lines
    assert (transport, other) == ("MetadataServiceGrpcTransport", "MetadataServiceRestTransport")
    assert errors == ["AlreadyExists", "InvalidArgument", "Aborted"]
    assert run == "joined"


CHANGES = """
from google.cloud import aiplatform
from localvertex import client

client.init(WORK_DIR)
print(type(aiplatform.Context.create("system.Experiment").api_client.transport).__name__)
aiplatform.init(experiment="later", experiment_tensorboard=False)
with aiplatform.start_run("one") as run:
    print(type(run._metadata_node.api_client.transport).__name__)
client.init(WORK_DIR)
print(type(aiplatform.Context("later").api_client.transport).__name__)
"""


@pytest.mark.slow
def test_the_sdk_finds_the_server_after_it_has_changed_to_rest(start_server: Callable[..., Server]) -> None:
    """`aiplatform.init` without a project changes to REST."""
    program = CHANGES.replace("WORK_DIR", repr(str(start_server().work_dir)))
    env = {name: text for name, text in os.environ.items() if name != ROOTS} | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("MetadataService")] == [
        f"MetadataService{each}Transport" for each in ("Grpc", "Rest", "Grpc")
    ]


CONNECTS = """
import os, grpc
with grpc.secure_channel("localhost:1", grpc.ssl_channel_credentials()) as channel:
    channel.unary_unary("/x")(b"", timeout=5)
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_connected", [pytest.param(False, marks=pytest.mark.soak), True])
def test_roots_of_the_user_stay_and_a_program_that_has_read_others_is_told_what_to_do(
    start_server: Callable[..., Server], tmp_path: Path, is_connected: bool
) -> None:
    import certifi

    server, yours = start_server(), tmp_path / "yours.pem"
    yours.write_text(f"# yours\n{Path(certifi.where()).read_text()}")
    # The second call finds the roots of the first one.
    program = f"from localvertex import client\nfor _ in range(2): client.init({str(server.work_dir)!r})"
    if is_connected:
        program = f"try:\n    exec({CONNECTS!r})\nexcept Exception:\n    pass\n{program}"
    env = os.environ | {ROOTS: str(yours), "PYTHONWARNINGS": "ignore"}
    program += f"\nimport os\nprint(open(os.environ[{ROOTS!r}]).read().startswith(open({str(yours)!r}).read()))"
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300)
    if is_connected:
        assert done.returncode == 1
        assert "pass api_transport='rest'" in done.stderr.splitlines()[-1]
    else:
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_server_without_grpc_is_called_by_rest(tmp_path: Path) -> None:
    from google.cloud import aiplatform

    run_folder.make_work_dir(tmp_path / "runs")
    (tmp_path / "runs" / "api").mkdir()
    token_file.publish(tmp_path / "runs", "http://127.0.0.1:1")
    client.init(tmp_path / "runs")
    assert aiplatform.initializer.global_config._api_transport == "rest"
    with pytest.raises(UserError, match="has no gRPC"):
        client.init(tmp_path / "runs", api_transport="grpc")
    token_file.publish(tmp_path / "runs", "http://127.0.0.1:1", "localhost:2")
    assert token_file.grpc_address(tmp_path / "runs") == "localhost:2"
    assert token_file.address(tmp_path / "runs") == "http://127.0.0.1:1"
