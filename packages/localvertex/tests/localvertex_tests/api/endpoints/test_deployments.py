"""Deployed models as processes: healthy or refused, restarted, and never outliving their server."""

import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from localvertex_tests.support import serving

from localvertex.api.endpoints.predictions import MAX_BYTES
from localvertex.containers.choice import Choice
from vertex_testing.processes import has_ended
from vertex_testing.server import Server, wait_until


def message(response: Any) -> str:
    return str(response.json()["error"]["message"])


def serving_processes(word: str) -> list[psutil.Process]:
    """Return the running processes of serving containers with an argument."""
    found = []
    for each in psutil.process_iter():
        try:
            if word in each.cmdline() and not has_ended(each):
                found.append(each)
        except psutil.Error:
            pass
    return found


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({"command": []}, 400, "no command, and the entry point of its image is not known locally"),
        ({"command": ["/no/such/program"]}, 400, "is not installed locally"),
        pytest.param(
            {"args": ["broken", "mark-broken"]},
            400,
            "exit code 1: error: the model cannot be loaded",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"args": ["unhealthy", "mark-broken"], "deploymentTimeout": "1s"},
            400,
            "not healthy within 1 s",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_container_that_does_not_serve_is_not_deployed(
    client: Any, fields: dict[str, Any], status: int, text: str
) -> None:
    endpoint = client.create()
    response = client.deploy(endpoint, client.upload(**fields))
    assert (response.status_code, message(response).count("\n")) == (status, 0)
    assert text in message(response)
    assert client.get(endpoint).get("deployedModels", []) == []
    assert client.get(endpoint)["trafficSplit"] == {}
    assert serving_processes("mark-broken") == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"model": "projects/local-project/locations/us-central1/models/none"}, "is not found"),
        ({"model": "models/1"}, "expected projects/local-project/locations/us-central1/models/ID"),
        ({"dedicatedResources": None}, "expected dedicatedResources or automaticResources, found none"),
        ({"dedicatedResources": {"minReplicaCount": 1}}, "machineType is missing"),
        ({"dedicatedResources": {"machineSpec": {"machineType": "n1-standard-2"}}}, "expected at least 1"),
        (
            {"dedicatedResources": {"machineSpec": {"machineType": "n1-giant"}, "minReplicaCount": 1}},
            "'n1-giant' is not a machine type",
        ),
    ],
)
def test_what_the_service_would_refuse_is_refused_before_anything_starts(
    client: Any, fields: dict[str, Any], text: str
) -> None:
    response = client.deploy(client.create(), client.upload("mark-refused"), **fields)
    assert response.status_code in (400, 404)
    assert text in message(response)
    assert serving_processes("mark-refused") == []


def test_answers_of_the_container_are_passed_on(client: Any) -> None:
    endpoint = client.deployed()
    assert client.predict(endpoint, 1).json()["modelDisplayName"] == "served"
    refused = client.predict(endpoint, "bad")
    assert (refused.status_code, message(refused)) == (400, '{"error": "an instance is bad"}')
    assert "an object that has a list 'predictions'" in message(client.predict(endpoint, "odd")).replace("a JSON", "an")
    assert "up to 1572864" in message(client.predict(endpoint, "x" * MAX_BYTES))
    assert "a list that is not empty" in message(client.predict(endpoint))


def test_a_container_that_ended_is_started_again(client: Any) -> None:
    endpoint = client.deployed()
    first = client.process_id(endpoint)
    crashed = client.predict(endpoint, "crash")
    assert crashed.status_code == 503
    # The process may still be ending.
    assert client.process_id(endpoint) != first


def test_a_version_that_is_deployed_is_not_deleted(client: Any) -> None:
    endpoint = client.deployed()
    model = client.get(endpoint)["deployedModels"][0]["model"].rpartition("/")[2]
    refused = client.server.call("DELETE", f"models/{model}")
    assert (refused.status_code, message(refused)) == (
        400,
        f"version 1 is deployed to {endpoint}; undeploy it first",
    )
    assert client.predict(endpoint, 1).status_code == 200
    client.done(client.post(endpoint, "undeployModel", {"deployedModelId": "1"}))
    client.done(client.server.call("DELETE", f"models/{model}"))


@pytest.mark.slow
def test_the_first_predictions_at_once_start_one_process(client: Any) -> None:
    endpoint = client.deployed()
    first = client.process_id(endpoint)
    psutil.Process(first).kill()
    wait_until(lambda: not psutil.pid_exists(first))
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: client.process_id(endpoint), range(8)))
    assert len(found) == 1
    assert first not in found


def test_a_damaged_record_is_shown_and_can_be_deleted(client: Any) -> None:
    endpoint, other = client.create(), client.create(displayName="other")
    file = client.server.work_dir / "endpoints" / endpoint.rpartition("/")[2] / "endpoint.json"
    file.write_text(file.read_text()[:-5])
    found = {each["name"]: each for each in client.server.call("GET", "endpoints").json()["endpoints"]}
    assert "its record is damaged" in found[endpoint]["description"]
    assert found[other]["displayName"] == "other"
    assert "its record is damaged" in message(client.predict(endpoint, 1))
    client.done(client.server.call("DELETE", f"endpoints/{endpoint.rpartition('/')[2]}"))
    assert not file.exists()


@pytest.mark.slow
def test_a_server_that_is_stopped_does_not_wait_for_a_deployment(
    start_server: Callable[..., Server], client_of: Callable[[Server], Any]
) -> None:
    server = start_server()
    client = client_of(server)
    endpoint, model = client.create(), client.upload("unhealthy", "mark-waiting")
    with ThreadPoolExecutor(1) as pool:
        deployment = pool.submit(client.deploy, endpoint, model)
        wait_until(lambda: serving_processes("mark-waiting"))
        # The container would have 300 s to become healthy.
        assert server.process.poll() is None
        server.process.terminate()
        server.process.wait(60)
        assert deployment.exception() is not None or deployment.result().status_code >= 400
    wait_until(lambda: not serving_processes("mark-waiting"))
    assert client_of(start_server()).get(endpoint).get("deployedModels", []) == []


def test_an_undeployed_model_has_no_process(client: Any) -> None:
    endpoint = client.deployed("mark-undeployed")
    process = psutil.Process(client.process_id(endpoint))
    client.done(client.post(endpoint, "undeployModel", {"deployedModelId": "1"}))
    assert has_ended(process)
    assert serving_processes("mark-undeployed") == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)])
def test_no_process_outlives_its_server_and_the_next_one_serves_again(
    start_server: Callable[..., Server], client_of: Callable[[Server], Any], number: signal.Signals
) -> None:
    server = start_server()
    client = client_of(server)
    endpoint = client.deployed()
    process = psutil.Process(client.process_id(endpoint))
    server.end(number)
    wait_until(lambda: has_ended(process))
    client = client_of(start_server())
    assert [each["id"] for each in client.get(endpoint)["deployedModels"]] == ["1"]
    assert client.process_id(endpoint) != process.pid


def test_other_commands_run_in_the_sandbox_and_are_reached_there(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if problem := Choice().how.problem:
        pytest.skip(problem)
    (tmp_path / "serving.py").write_text(Path(serving.__file__).read_text())
    script = 'ls -d "$HOME"/* /etc/hostname 2>/dev/null; exec python3 -P "$AIP_STORAGE_URI/serving.py" $(AIP_HTTP_PORT)'
    with socket.socket() as held:
        # No other process of this machine can listen there.
        held.bind(("127.0.0.1", 0))
        number = held.getsockname()[1]
        ports = [{"containerPort": number}]
        endpoint = client.deployed(artifact=str(tmp_path), command=["sh", "-c", script], args=[], ports=ports)
        values = client.predict(endpoint, 1).json()["predictions"][0]["by"]
        assert (values["arguments"], values["AIP_HTTP_PORT"]) == (str(number), str(number))
        log = client.server.work_dir / "endpoints" / endpoint.rpartition("/")[2] / "1.log"
        assert log.read_text().split("\n")[:2] == ["/etc/hostname", "serving started"]
        # Its loopback interface is its own.
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", number))


def test_a_model_whose_files_are_lost_is_neither_deployed_nor_used_for_a_batch(client: Any) -> None:
    data = client.server.work_dir / "buckets" / "of-lost-models"
    (data / "model").mkdir(parents=True)
    (data / "model" / "weights").write_text("w")
    (data / "lines.jsonl").write_text("1\n")
    model = client.upload(artifact="gs://of-lost-models/model")
    (data / "model" / "weights").unlink()
    machine = {"machineSpec": {"machineType": "n1-standard-2"}, "startingReplicaCount": 1}
    body = {"displayName": "lost", "model": model, "dedicatedResources": machine}
    body["inputConfig"] = {"instancesFormat": "jsonl", "gcsSource": {"uris": ["gs://of-lost-models/lines.jsonl"]}}
    body["outputConfig"] = {"predictionsFormat": "jsonl", "gcsDestination": {"outputUriPrefix": "gs://of-lost-models"}}
    for answer in (client.deploy(client.create(), model), client.server.call("POST", "batchPredictionJobs", body)):
        assert answer.status_code == 400
        assert message(answer).startswith('There are no files under "gs://of-lost-models/model" to copy')
