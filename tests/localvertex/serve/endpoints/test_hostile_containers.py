"""Containers that answer badly or late, and deployments that end while their process starts."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.localvertex.serve.endpoints.test_deployments import message, serving_processes
from tests.support.server import wait_until


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
    response = client.post(client.deployed(), "rawPredict", {"instances": ["half"]})
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
