"""Event files, and the tensorboards that custom jobs name."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.util.tensor_util import make_tensor_proto

from localvertex.api.tensorboards import event_files
from vertex_testing.server import Server, wait_until

LOGS = """
import os, struct, sys
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
for name in ("train", "Eval 1"):
    folder = os.environ["AIP_TENSORBOARD_LOG_DIR"] + name
    os.makedirs(folder)
    with open(folder + "/events.out.tfevents.1.host", "wb") as file:
        for step in (1, 2, 3):
            value = Summary.Value(tag="loss", simple_value=1 / step)
            data = Event(wall_time=1e9 + step, step=step, summary=Summary(value=[value])).SerializeToString()
            head = struct.pack("<Q", len(data))
            for part in (head, data):
                file.write(part + struct.pack("<I", masked_crc32c(part)))
sys.exit(int(sys.argv[1]))
"""


def record(event: Event) -> bytes:
    """Return an event as it is in a file."""
    data = event.SerializeToString()
    parts = (len(data).to_bytes(8, "little"), data)
    return b"".join(part + int(masked_crc32c(part)).to_bytes(4, "little") for part in parts)


def scalar(step: int, value: float) -> Event:
    summary = Summary(value=[Summary.Value(tag="loss", simple_value=value)])
    return Event(wall_time=1e9, step=step, summary=summary)


def test_scalars_of_both_formats_are_read_and_other_values_left_out(tmp_path: Path) -> None:
    values = [
        Summary.Value(tag="accuracy", tensor=make_tensor_proto(0.5)),
        Summary.Value(tag="weights", tensor=make_tensor_proto([[1.0, 2.0, 3.0]])),
        Summary.Value(tag="text", tensor=make_tensor_proto("words")),
        Summary.Value(tag="picture", image=Summary.Image(width=1)),
    ]
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "events.out.tfevents.2").write_bytes(record(Event(step=4, summary=Summary(value=values))))
    (tmp_path / "events.out.tfevents.1").write_bytes(
        record(Event(file_version="brain.Event:2")) + record(scalar(1, 0.25)) + record(scalar(2, float("inf")))
    )
    (tmp_path / "other.txt").write_text("x")
    found = event_files.scalars(tmp_path, pytest.fail)
    losses = [(each["step"], each["scalar"]["value"]) for each in found["default"]["loss"]]
    assert losses == [("1", 0.25), ("2", float("inf"))]
    assert found["default"]["loss"][0]["wallTime"] == "2001-09-09T01:46:40Z"
    assert {tag: len(points) for tag, points in found["a-b"].items()} == {"accuracy": 1}
    assert event_files.scalars(tmp_path / "missing", pytest.fail) == {}


@pytest.mark.parametrize("damage", [b"\x00" * 7, b"\xff" * 30, record(scalar(3, 1.0))[:-1], b"x" * 500])
def test_a_damaged_event_ends_its_file_and_is_reported(tmp_path: Path, damage: bytes) -> None:
    reported = list[str]()
    (tmp_path / "events.out.tfevents.1").write_bytes(record(scalar(1, 1.0)) + damage)
    (tmp_path / "events.out.tfevents.2").write_bytes(record(scalar(2, 2.0)))
    found = event_files.scalars(tmp_path, reported.append)
    assert [each["step"] for each in found["default"]["loss"]] == ["1", "2"]
    assert len(reported) == 1
    assert "events.out.tfevents.1" in reported[0]


@pytest.mark.slow
def test_the_logs_of_a_custom_job_are_in_its_tensorboard_when_it_has_ended(
    server: Server, sdk: Callable[[Server], Any]
) -> None:
    aiplatform = sdk(server)
    tensorboard = aiplatform.Tensorboard.create(display_name="of jobs")
    made = {}
    for name, exit_code in (("succeeds", 0), ("fails", 3)):
        container = {"image_uri": "python:3.11", "command": ["python", "-c", LOGS, str(exit_code)]}
        pools = [{"machine_spec": {"machine_type": "n1-standard-4"}, "container_spec": container, "replica_count": 1}]
        job = aiplatform.CustomJob(name, pools, base_output_dir=f"gs://bucket/{name}", staging_bucket="gs://bucket")
        job.submit(tensorboard=tensorboard.resource_name, service_account="a@b.c", disable_retries=True)
        made[name] = job
    wait_until(lambda: all(job.state.name in ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED") for job in made.values()))
    for name, job in made.items():
        experiment = aiplatform.TensorboardExperiment(job.name, tensorboard.name)
        assert experiment.display_name == name
        runs = {each.name: each for each in aiplatform.TensorboardRun.list(experiment.resource_name)}
        assert set(runs) == {"train", "eval-1"}
        points = runs["train"].read_time_series_data()["loss"].values
        assert [(each.step, each.scalar.value) for each in points] == [(1, 1.0), (2, 0.5), (3, pytest.approx(1 / 3))]
    assert made["succeeds"].state.name == "JOB_STATE_SUCCEEDED"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["projects/local-project/locations/us-central1/tensorboards/404", "no name"])
def test_a_tensorboard_that_is_not_here_does_not_hurt_the_job(server: Server, name: str) -> None:
    container = {"imageUri": "python:3.11", "command": ["python", "-c", "pass"]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1", "containerSpec": container}
    spec = {
        "workerPoolSpecs": [pool],
        "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/lost"},
        "tensorboard": name,
    }
    answer = server.call("POST", "customJobs", {"displayName": "lost", "jobSpec": spec})
    number = answer.json()["name"].rpartition("/")[2]
    ended = wait_until(lambda: (job := server.call("GET", f"customJobs/{number}").json()).get("endTime") and job)
    assert ended["state"] == "JOB_STATE_SUCCEEDED", ended
    assert f"customJobs/{number}: warning: " in server.text
    assert f"is not in {name}: " in server.text


def test_event_files_need_no_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_bytes(record(scalar(7, 1.0)))
    code = (
        "import sys; from pathlib import Path; from localvertex.api.tensorboards import event_files\n"
        "found = event_files.scalars(Path(sys.argv[1]), print)\n"
        "print(found['default']['loss'][0]['step'], 'tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "7 False\n"
