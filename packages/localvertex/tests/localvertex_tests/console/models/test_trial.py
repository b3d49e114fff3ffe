"""A model that is tried: one process at most, which ends when it is idle, cancelled, deleted or replaced."""

import base64
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.rest.errors import ApiError, Status
from localvertex.console.local_route import LocalCall
from localvertex.console.models.trial import ModelTrial
from vertex_testing.processes import command_line, has_ended
from vertex_testing.server import wait_until

IMAGE = base64.b64encode(b"an image").decode()


def call(version: str = "1") -> LocalCall:
    """Return a request without a body."""
    return LocalCall(path={"id": "m", "version": version})


def state(room: Any, version: str = "1") -> str:
    """Return the state of a version's process."""
    return str(room.models.trial_state(call(version))["state"])


def servers() -> list[psutil.Process]:
    """Return the serving containers below this process."""
    below = psutil.Process().children(recursive=True)
    return [each for each in below if any(word.endswith("serving.py") for word in command_line(each)[:3])]


def test_an_image_is_sent_as_vertex_does_and_other_instances_as_they_are(room: Any) -> None:
    room.add()
    found = room.predict(image=IMAGE, parameters={"top_k": 2})
    assert [each["instance"] for each in found["predictions"]] == [{"b64": IMAGE}]
    assert (found["endpoint"], found["class_names"]) == ("", [])
    assert [each["instance"] for each in room.predict(instances=["a", 2])["predictions"]] == ["a", 2]
    assert state(room) == "ready"
    assert room.models.trial_state(call())["line"] == "serving started"
    # A trial is no endpoint.
    assert EndpointRecords(room.work_dir).ids == []
    with pytest.raises(ApiError, match="an instance is bad") as refused:
        room.predict(instances=["bad"])
    assert refused.value.status is Status.INVALID_ARGUMENT
    with pytest.raises(ApiError, match="must answer with a JSON object that has a list 'predictions'"):
        room.predict(instances=["odd"])


def test_one_process_serves_all_requests_until_another_version_is_tried(room: Any) -> None:
    room.add()
    room.add()
    first = room.process("1")
    assert room.process("1") == first
    second = room.process("2")
    assert first != second
    wait_until(lambda: has_ended(first))
    assert (state(room, "1"), state(room, "2")) == ("stopped", "ready")
    with pytest.raises(ApiError):
        room.predict("2", instances=["crash"])
    # As on an endpoint, a process that has ended is started again.
    assert room.process("2") not in (first, second)
    assert len(servers()) == 1


def test_a_start_is_cancelled_by_the_user_and_by_another_version(room: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    room.add("gate", str(gate))
    room.add()
    with ThreadPoolExecutor(1) as pool:
        for is_cancelled in (True, False):
            waiting = pool.submit(room.predict, instances=[1])
            wait_until(lambda: servers() and state(room) == "starting")
            if is_cancelled:
                room.models.cancel(call())
            else:
                room.process("2")
            with pytest.raises(ApiError, match="cancelled, or another version is tried") as refused:
                waiting.result(60)
            assert refused.value.status is Status.ABORTED
            assert state(room) == "stopped"
        gate.touch()
        assert room.process("1") in servers()
    assert len(servers()) == 1


@pytest.mark.slow
def test_a_cancelled_start_ends_whenever_it_is_cancelled(room: Any, tmp_path: Path) -> None:
    room.add("gate", str(tmp_path / "never"))
    with ThreadPoolExecutor(1) as pool:
        for pause in (0.0, 0.002, 0.01, 0.05, 0.1, 0.2):
            waiting = pool.submit(room.predict, instances=[1])
            wait_until(lambda: room.trial._tried is not None)
            time.sleep(pause)
            room.models.cancel(call())
            with pytest.raises(ApiError):
                waiting.result(60)
    wait_until(lambda: not servers())


def test_an_idle_process_ends_and_one_in_use_does_not(room: Any, tmp_path: Path) -> None:
    room.add()
    room.models.trial = trial = ModelTrial(EndpointRecords(room.work_dir), room.deployments, idle_seconds=0.2)
    wanted = tmp_path / "wanted"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(room.predict, instances=[f"until {wanted}"])
        wait_until(lambda: [*tmp_path.glob("wanted.*")])
        # Longer than the time after which it would be idle.
        threading.Event().wait(0.5)
        assert len(servers()) == 1
        wanted.touch()
        waiting.result(60)
    wait_until(lambda: not servers())
    wait_until(lambda: trial.state("m", "1")["state"] == "stopped")
    assert room.predict(instances=[1])["predictions"]


def test_a_deployed_version_answers_where_it_is_deployed(room: Any) -> None:
    room.add()
    room.deploy("one", "1", traffic=0)
    found = room.predict(instances=[1])
    assert found["endpoint"].endswith("/endpoints/one")
    assert found["predictions"][0]["by"]["AIP_ENDPOINT_ID"] == "one"
    assert state(room) == "stopped"
    room.models.cancel(call())
    assert room.predict(instances=[1])["predictions"][0]["by"]["pid"] == found["predictions"][0]["by"]["pid"]


def test_a_container_that_ends_says_why_and_is_started_again(room: Any) -> None:
    room.add("broken")
    for _ in range(2):
        with pytest.raises(ApiError, match="the model cannot be loaded") as refused:
            room.predict(instances=[1])
        assert refused.value.status is Status.FAILED_PRECONDITION
        assert state(room) == "stopped"


def test_a_deleted_version_has_no_process(room: Any) -> None:
    room.add()
    room.add()
    process = room.process("2")
    room.trial.stop("m", "1")
    room.trial.stop("other")
    assert not has_ended(process)
    room.trial.stop("m", "2")
    assert has_ended(process)
    process = room.process("1")
    room.trial.stop("m")
    assert has_ended(process)


def test_too_many_requests_are_refused_and_an_end_of_the_server_ends_them(room: Any, tmp_path: Path) -> None:
    room.add("gate", str(tmp_path / "never"))
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(room.predict, instances=[1]) for _ in range(4)]
        wait_until(lambda: room.trial._num_waiting == 4 and servers())
        with pytest.raises(ApiError, match="4 requests wait") as refused:
            room.predict(instances=[1])
        assert refused.value.status is Status.RESOURCE_EXHAUSTED
        room.close()
        for each in waiting:
            with pytest.raises(ApiError):
                each.result(60)
    wait_until(lambda: not servers())
