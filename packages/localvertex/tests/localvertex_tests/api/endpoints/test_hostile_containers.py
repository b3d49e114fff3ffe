"""Containers that answer badly or late, and deployments that end while their process starts."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from localvertex_tests.api.endpoints.test_deployments import message, serving_processes

from vertex_testing.server import wait_until


def test_a_health_check_that_never_ends_does_not_prolong_the_deployment(client: Any) -> None:
    endpoint = client.create()
    model = client.upload("endless", "mark-endless", deploymentTimeout="1s")
    response = client.deploy(endpoint, model)
    assert response.status_code == 400
    assert "not healthy within 1 s" in message(response)
    assert "no answer within" in message(response)
    assert serving_processes("mark-endless") == []


@pytest.mark.slow  # The server waits a time for the end of the process, which may have crashed.
def test_half_an_answer_is_none(client: Any) -> None:
    response = client.predict(client.deployed(), "half")
    assert response.status_code == 503
    assert "ended 81 bytes too early" in message(response)


def test_a_model_that_is_undeployed_while_it_starts_has_no_process(client: Any, tmp_path: Path) -> None:
    gate = tmp_path / "mark-gate"
    gate.touch()
    endpoint = client.deployed("gate", str(gate))
    first = psutil.Process(client.process_id(endpoint))
    gate.unlink()
    first.kill()
    first.wait(60)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(client.predict, endpoint, 1) for _ in range(3)]
        wait_until(lambda: serving_processes(str(gate)))
        client.done(client.post(endpoint, "undeployModel", {"deployedModelId": "1"}))
        gate.touch()
        assert [each.result().status_code >= 400 for each in waiting] == [True] * 3
    assert serving_processes(str(gate)) == []


@pytest.mark.slow
def test_a_server_whose_models_do_not_answer_answers_all_other_requests(client: Any, tmp_path: Path) -> None:
    gate = tmp_path / "answers"
    endpoint = client.deployed()
    with ThreadPoolExecutor(50) as pool:
        waiting = [pool.submit(client.predict, endpoint, f"until {gate}") for _ in range(50)]
        wait_until(lambda: len([*tmp_path.iterdir()]) >= 40)
        assert client.get(endpoint)["trafficSplit"] == {"1": 100}
        assert not [each for each in waiting if each.done()]
        gate.touch()
        assert {each.result().status_code for each in waiting} == {200}


def test_no_record_that_was_edited_by_hand_is_an_error_of_the_server(client: Any) -> None:
    endpoint = client.deployed()
    name = endpoint.rpartition("/")[2]
    file = client.server.work_dir / "endpoints" / name / "endpoint.json"
    good = file.read_text()
    changes: list[dict[str, Any]] = [
        {"modelVersionId": None},
        {"modelVersionId": 1},
        {"createTime": None},
        {"id": "../../out"},
        {"dedicatedResources": {"machineSpec": {"acceleratorCount": "x"}}},
    ]
    found: list[dict[str, Any]] = [json.loads(good) for _ in changes]
    for record, change in zip(found, changes, strict=True):
        record["deployedModels"][0] |= change
    for record in [*found, {**json.loads(good), "trafficSplit": {"1": -5}}]:
        file.write_text(json.dumps(record))
        assert "its record is damaged" in client.get(endpoint)["description"]
        assert "is damaged" in message(client.predict(endpoint, 1))
    file.write_text(good)
