"""The server stays up and tells the truth: full disks, damaged records, cut-off and hostile requests, SIGKILL."""

import json
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from vertex_testing.server import PARENT, Server, wait_until

UNTIL = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)"


def custom_job(code: str, *arguments: str) -> dict[str, Any]:
    container = {"imageUri": "python:3.11", "command": ["python", "-c", code, *arguments]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1", "containerSpec": container}
    return {"displayName": "job", "jobSpec": {"workerPoolSpecs": [pool], "scheduling": {"disableRetries": True}}}


def create(server: Server, collection: str, body: dict[str, Any]) -> str:
    answer = server.call("POST", collection, body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["name"].rpartition("/")[2])


def state(server: Server, path: str) -> str:
    return str(server.call("GET", path).json()["state"]).rpartition("STATE_")[2]


def file_of(server: Server, collection: str, number: str) -> Path:
    return server.work_dir / "api" / collection / f"{number}.json"


def processes(word: str) -> list[psutil.Process]:
    """Return the processes with this word in their command line, without their supervisors."""
    found = []
    for each in psutil.process_iter(["cmdline"]):
        words = each.info["cmdline"] or []
        if word in words and "-S" not in words:
            found.append(each)
    return found


def test_a_custom_job_that_ends_on_a_full_disk_keeps_its_state(
    start_server: Callable[..., Server], tmp_path: Path
) -> None:
    server, go = start_server(), tmp_path / "go"
    number = create(server, "customJobs", custom_job(UNTIL, str(go)))
    wait_until(lambda: state(server, f"customJobs/{number}") == "RUNNING")
    with server.full_disk():
        refused = server.call("POST", "customJobs", custom_job("pass"))
        assert (refused.status_code, refused.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
        go.touch()
        wait_until(lambda: state(server, f"customJobs/{number}") == "SUCCEEDED")
        assert "RUNNING" in file_of(server, "customJobs", number).read_text()
    wait_until(lambda: "SUCCEEDED" in file_of(server, "customJobs", number).read_text())
    server.end(signal.SIGKILL)
    again = start_server()
    assert state(again, f"customJobs/{number}") == "SUCCEEDED"
    with again.full_disk():
        assert again.call("DELETE", f"customJobs/{number}").json()["done"] is True
        assert again.call("GET", f"customJobs/{number}").status_code == 404


@pytest.mark.slow
def test_a_run_that_met_a_full_disk_ends_and_can_be_deleted(
    start_server: Callable[..., Server], small_pipeline: Path, command: Any
) -> None:
    server = start_server()
    config = {"parameterValues": {"seconds": 300}}
    body = {"pipelineSpec": json.loads(small_pipeline.read_text()), "runtimeConfig": config}
    for name in ("kept", "deleted"):
        server.call("POST", "pipelineJobs", body, params={"pipelineJobId": name}).raise_for_status()
        wait_until(lambda name=name: "time.sleep" in str(server.call("GET", f"pipelineJobs/{name}").json()))
    with server.full_disk():
        for name in ("kept", "deleted"):
            assert server.call("POST", f"pipelineJobs/{name}:cancel", {}).status_code == 200
        for name in ("kept", "deleted"):
            wait_until(lambda name=name: state(server, f"pipelineJobs/{name}") in ("FAILED", "CANCELLED"))
        assert server.call("DELETE", "pipelineJobs/deleted").json()["done"] is True
        assert server.call("GET", "pipelineJobs/deleted").status_code == 404
    # The state of the run is written when there is room.
    wait_until(lambda: "journal" not in json.loads((server.work_dir / "kept" / "run.json").read_text()))
    content = json.loads((server.work_dir / "kept" / "run.json").read_text())
    assert content["state"] == state(server, "pipelineJobs/kept")
    assert content["state"] in ("FAILED", "CANCELLED")
    assert content["end_time"]
    assert server.call("DELETE", "pipelineJobs/kept").json()["done"] is True
    assert "Traceback" not in server.text


@pytest.mark.slow
def test_what_was_cancelled_on_a_full_disk_stays_cancelled_after_a_kill(
    start_server: Callable[..., Server], small_pipeline: Path, tmp_path: Path
) -> None:
    server = start_server()
    config = {"parameterValues": {"seconds": 300}}
    body = {"pipelineSpec": json.loads(small_pipeline.read_text()), "runtimeConfig": config}
    server.call("POST", "pipelineJobs", body, params={"pipelineJobId": "run"}).raise_for_status()
    paths = ["pipelineJobs/run", f"customJobs/{create(server, 'customJobs', custom_job(UNTIL, str(tmp_path / 'go')))}"]
    wait_until(lambda: "time.sleep" in str(server.call("GET", paths[0]).json()))
    wait_until(lambda: state(server, paths[1]) == "RUNNING")
    # The server is killed before there is room.
    with suppress(ProcessLookupError), server.full_disk():
        for path in paths:
            assert server.call("POST", f"{path}:cancel", {}).status_code == 200
        for path in paths:
            wait_until(lambda path=path: state(server, path) == "CANCELLED")
        server.end(signal.SIGKILL)
    server = start_server()
    with server.full_disk():
        assert [state(server, path) for path in paths] == ["CANCELLED"] * 2
    server.end()
    assert [state(start_server(), path) for path in paths[:1]] == ["CANCELLED"]


def test_a_model_for_which_there_is_no_room_is_not_the_users_mistake(
    start_server: Callable[..., Server], tmp_path: Path
) -> None:
    server, files = start_server(), tmp_path / "model"
    files.mkdir()
    (files / "weights").write_text("weights")
    model = {"displayName": "m", "artifactUri": str(files)}
    with server.full_disk():
        refused = server.call("POST", "models:upload", {"model": model})
        assert (refused.status_code, refused.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    missing = server.call("POST", "models:upload", {"model": model | {"artifactUri": "/dev/zero"}})
    assert missing.status_code == 400
    assert server.call("POST", "models:upload", {"model": model}).status_code == 200


DAMAGED: dict[str, bytes] = {
    "empty": b"",
    "cut off": b'{"name": "',
    "no UTF-8": b"\xff\xfe",
    "a list": b"[]",
    "no name": b"{}",
    "a name of another type": b'{"name": 3}',
    "nothing but a name": b'{"name": "PARENT/COLLECTION/NUMBER"}',
    "other types": b'{"name": "PARENT/COLLECTION/NUMBER", "createTime": 3, "state": [], "pipelineSpec": 3, "done": 1}',
}

JOBS = ("customJobs", "trainingPipelines", "hyperparameterTuningJobs", "batchPredictionJobs")

COLLECTIONS = ("pipelineJobs", *JOBS, "schedules")


@pytest.mark.slow
def test_damaged_records_of_all_collections_are_listed_and_hurt_nothing(
    start_server: Callable[..., Server], light_pipeline: dict[str, Any]
) -> None:
    server = start_server()
    assert server.call("POST", "models:upload", {"model": {"displayName": "intact"}, "modelId": "m1"}).ok
    assert server.call("POST", "models:upload", {"model": {"displayName": "broken"}, "modelId": "m2"}).ok
    run = server.call("POST", "pipelineJobs", {"pipelineSpec": light_pipeline}, params={"pipelineJobId": "intact"})
    job = create(server, "customJobs", custom_job("pass"))
    wait_until(lambda: state(server, "pipelineJobs/intact") == state(server, f"customJobs/{job}") == "SUCCEEDED")
    assert run.ok
    assert server.get().status_code == 200
    (server.work_dir / "models" / "m2" / "1" / "model.json").write_text('{"display_name"')
    (server.work_dir / "models" / "m1" / "2").mkdir()
    damaged_run = server.work_dir / "damaged-run"
    damaged_run.mkdir()
    (damaged_run / "run.json").write_text('{"run_id": 3}')
    request = json.loads(file_of(server, "pipelineJobs", "intact").read_text())
    file_of(server, "pipelineJobs", "damaged-run").write_text(
        json.dumps(request | {"name": f"{PARENT}/pipelineJobs/damaged-run"})
    )
    numbers = [str(100 + index) for index in range(len(DAMAGED))]
    for collection in COLLECTIONS:
        for number, text in zip(numbers, DAMAGED.values(), strict=True):
            replaced = text.replace(b"PARENT", PARENT.encode()).replace(b"COLLECTION", collection.encode())
            file = file_of(server, collection, number)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(replaced.replace(b"NUMBER", number.encode()))
    server.end(signal.SIGKILL)
    server = start_server()
    for collection in COLLECTIONS:
        found = {each["name"].rpartition("/")[2] for each in server.call("GET", collection).json()[collection]}
        assert set(numbers) <= found
        assert len(found) >= len(numbers)
    models = {each["displayName"]: each for each in server.call("GET", "models").json()["models"]}
    assert "versionDescription" not in models["intact"]
    assert "is damaged" in models["m2"]["versionDescription"]
    assert state(server, "pipelineJobs/intact") == state(server, f"customJobs/{job}") == "SUCCEEDED"
    assert state(server, "pipelineJobs/damaged-run") == "FAILED"
    shown = "".join(server.call("GET", each).text for each in (*JOBS, "schedules"))
    assert shown.count("its record is damaged") >= 5 * len(numbers)
    for path in ("intact/" + "a" * 3000, "intact/a%00b"):
        assert server.get(f"/runs/{path}").status_code == 404
    assert server.text.count("api/customJobs/100.json is damaged") == 1
    for collection in COLLECTIONS:
        for number in numbers:
            assert server.call("GET", f"{collection}/{number}").status_code in (200, 404)
            assert server.call("DELETE", f"{collection}/{number}").status_code == 200, (collection, number)
    assert server.call("DELETE", "pipelineJobs/damaged-run").status_code == 200
    assert "Traceback" not in server.text


def send(server: Server, data: bytes) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=120)
    connection.sendall(data)
    return connection


def head_of(server: Server, method: str, path: str, length: str) -> bytes:
    host = server.url.removeprefix("http://")
    lines = [f"{method} /v1/{PARENT}/{path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", length]
    lines += [f"{name}: {value}" for name, value in server.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize("length", ["Content-Length: 100", "Transfer-Encoding: chunked"])
def test_a_request_that_is_cut_off_has_no_effect(
    start_server: Callable[..., Server], light_pipeline: dict[str, Any], length: str
) -> None:
    server = start_server()
    request = {"parent": PARENT, "pipelineJob": {"pipelineSpec": light_pipeline}}
    schedule = {"displayName": "kept", "cron": "0 0 1 1 *", "createPipelineJobRequest": request}
    number = create(server, "schedules", schedule | {"maxConcurrentRunCount": "1", "maxRunCount": "7"})
    before = file_of(server, "schedules", number).read_text()
    for method, path in (
        ("POST", f"schedules/{number}:pause"),
        ("PATCH", f"schedules/{number}?updateMask=maxRunCount"),
        ("DELETE", f"schedules/{number}"),
    ):
        send(server, head_of(server, method, path, length)).close()
        part = b"2\r\n{}\r\n" if "chunked" in length else b"{}"
        send(server, head_of(server, method, path, length) + part).close()
    # A server that is stopped completes the requests that it has accepted.
    server.end(signal.SIGTERM)
    assert file_of(server, "schedules", number).read_text() == before


@pytest.mark.slow
def test_a_request_that_does_not_arrive_is_closed(start_server: Callable[..., Server]) -> None:
    code = (
        "import sys; from localvertex.api import connection; connection.REQUEST_SECONDS = 1.0; "
        "from localvertex.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    server = start_server(program=("-c", code))
    whole = head_of(server, "POST", "pipelineJobs", "Content-Length: 100")
    for data, answer in ((b"", b""), (b"GET / HT", b""), (whole[:-2], b""), (whole + b'{"a', b"HTTP/1.1 408")):
        with send(server, data) as connection:
            received = b"".join(iter(lambda connection=connection: connection.recv(65536), b""))
        assert received.startswith(answer)
        assert bool(received) == bool(answer)
    assert server.call("GET", "pipelineJobs").status_code == 200


def test_a_custom_job_is_failed_only_when_its_process_is_gone(
    start_server: Callable[..., Server], tmp_path: Path
) -> None:
    server, go = start_server(), str(tmp_path / "go")
    number = create(server, "customJobs", custom_job(UNTIL, go))
    wait_until(lambda: processes(go))
    (process,) = processes(go)
    # The supervisor would end the process within the grace time.
    supervisor = process.parent()
    supervisor.suspend()
    server.end(signal.SIGKILL)
    again = start_server()
    for _ in range(2):
        assert state(again, f"customJobs/{number}") == "RUNNING"
        assert again.call("DELETE", f"customJobs/{number}").status_code == 400
        assert again.call("POST", f"customJobs/{number}:cancel", {}).status_code == 200
    assert process.is_running()
    supervisor.resume()
    wait_until(lambda: state(again, f"customJobs/{number}") == "FAILED")
    assert not process.is_running()
    assert "create it again" in again.call("GET", f"customJobs/{number}").json()["error"]["message"]
    assert again.call("DELETE", f"customJobs/{number}").status_code == 200


@pytest.mark.soak
@pytest.mark.slow
def test_a_large_pipeline_does_not_hold_up_others(
    start_server: Callable[..., Server], light_pipeline: dict[str, Any]
) -> None:
    server = start_server()
    number = create(server, "customJobs", custom_job("pass"))
    executors = {f"exec-{index}": {"container": {"image": "x" * 60, "args": ["y"] * 20}} for index in range(40000)}
    spec = light_pipeline | {"deploymentSpec": {"executors": executors}}
    body = json.dumps({"pipelineSpec": spec}).encode()
    assert len(body) > 8 << 20
    codes: list[int] = []

    def submit() -> None:
        headers = {"Content-Type": "application/json"}
        path = f"/v1/{PARENT}/pipelineJobs"
        codes.append(server.request("POST", path, data=body, headers=headers, timeout=300).status_code)

    thread = threading.Thread(target=submit)
    thread.start()
    num_answers = 0
    while thread.is_alive():
        # This one takes the lock of the state.
        assert server.call("POST", f"customJobs/{number}:cancel", {}).status_code == 200
        num_answers += thread.is_alive()
    assert codes == [400]
    # One answer would come before the large one has arrived.
    assert num_answers >= 5


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("customJobs", {"env": [{"value": "x"}]}, "has no name"),
        ("customJobs", {"env": [{}]}, "has no name"),
        ("pipelineJobs", {"displayName": "\ud800"}, "half of a character"),
    ],
)
def test_hostile_fields_are_refused(server: Server, path: str, body: dict[str, Any], reason: str) -> None:
    if path == "customJobs":
        job = custom_job("pass")
        job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"] |= body
        body = job
    answer = server.call("POST", path, body)
    assert answer.status_code == 400
    assert reason in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/runs/x/a%00b", "/runs/models/x/" + "9" * 5000 + "/", "/runs/x/" + "y/" * 3000])
def test_hostile_paths_are_not_found(server: Server, path: str) -> None:
    assert server.get(path).status_code == 404
