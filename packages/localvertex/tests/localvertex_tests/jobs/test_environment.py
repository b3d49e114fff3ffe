"""The variables that describe the cluster to each replica, as a real process sees them."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localvertex import jobs
from localvertex.jobs.environment import reserve_addresses

Seen = Callable[..., dict[str, dict[str, Any]]]

SHOW = """
import json, os, sys
task = json.loads(os.environ["CLUSTER_SPEC"])["task"]
names = ("TF_CONFIG", "CLUSTER_SPEC", "AIP_CHECKPOINT_DIR", "AIP_MODEL_DIR", "CLOUD_ML_PROJECT_ID", "CLOUD_ML_JOB_ID",
         "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
path = f"{sys.argv[1]}/{task['type']}-{task['index']}"
with open(path, "w") as file:
    json.dump({name: os.environ.get(name) for name in names}, file)
os.rename(path, f"{path}.json")
"""

# The primary ends the job, so it waits for the others.
WAIT = (
    SHOW
    + """
import pathlib, time
while len(list(pathlib.Path(sys.argv[1]).glob("workerpool*.json"))) < NUM_REPLICAS:
    time.sleep(0.02)
"""
)


@pytest.fixture
def environments(message: Callable[..., dict[str, Any]], run: Callable[..., jobs.Outcome], tmp_path: Path) -> Seen:
    """Run pools of these sizes and return the variables that each replica saw."""

    def run_(*sizes: int, image: str = "gcr.io/x/y:1") -> dict[str, dict[str, Any]]:
        for left in tmp_path.glob("workerpool*.json"):
            left.unlink()
        program = WAIT.replace("NUM_REPLICAS", str(sum(sizes)))
        made = message(*[(program, size) if size else None for size in sizes])
        for pool in filter(None, made["job_spec"]["worker_pool_specs"]):
            pool["container_spec"]["image_uri"] = image
        outcome = run(made)
        assert outcome.state is jobs.JobState.SUCCEEDED, outcome.error
        return {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("workerpool*.json")}

    return run_


def test_every_replica_gets_tf_config_with_its_own_task_and_the_same_cluster(environments: Seen) -> None:
    seen = environments(1, 2, 1, 1)
    assert sorted(seen) == ["workerpool0-0", "workerpool1-0", "workerpool1-1", "workerpool2-0", "workerpool3-0"]
    configs = {name: json.loads(each["TF_CONFIG"]) for name, each in seen.items()}
    tasks = {name: (config["task"]["type"], config["task"]["index"]) for name, config in configs.items()}
    assert tasks == {
        "workerpool0-0": ("chief", 0),
        "workerpool1-0": ("worker", 0),
        "workerpool1-1": ("worker", 1),
        "workerpool2-0": ("ps", 0),
        "workerpool3-0": ("evaluator", 0),
    }
    clusters = [config["cluster"] for config in configs.values()]
    assert all(cluster == clusters[0] for cluster in clusters)
    assert {role: len(addresses) for role, addresses in clusters[0].items()} == {"chief": 1, "worker": 2, "ps": 1}
    chief = configs["workerpool0-0"]
    assert set(chief) == {"cluster", "environment", "task", "job"}
    assert chief["environment"] == "cloud"
    assert len({config["task"]["cloud"] for config in configs.values()}) == 1
    assert "trial" not in chief["task"]
    assert json.loads(chief["job"])["worker_pool_specs"][1]["replica_count"] == 2


def test_all_replicas_of_a_job_get_its_id_and_those_of_the_next_job_another(
    environments: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_ML_JOB_ID", "of-the-user")
    first, second = ({each["CLOUD_ML_JOB_ID"] for each in environments(1, 1).values()} for _ in range(2))
    assert (len(first), len(second), len(first | second | {"of-the-user"})) == (1, 1, 3)


def test_cluster_spec_names_every_pool_and_the_same_addresses(environments: Seen) -> None:
    seen = environments(1, 1, 0, 1)
    spec, config = (json.loads(seen["workerpool1-0"][name]) for name in ("CLUSTER_SPEC", "TF_CONFIG"))
    assert list(spec["cluster"]) == ["workerpool0", "workerpool1", "workerpool3"]
    assert spec["cluster"]["workerpool1"] == config["cluster"]["worker"]
    assert spec["task"] == {"type": "workerpool1", "index": 0}
    assert "workerpool2-0" not in seen
    addresses = [each for pool in spec["cluster"].values() for each in pool]
    assert len(set(addresses)) == 3
    assert all(each.startswith("127.0.0.1:") for each in addresses)


def test_a_single_replica_gets_no_tf_config(environments: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["elsewhere:1"]}}')
    seen = environments(1)
    assert seen["workerpool0-0"]["TF_CONFIG"] is None
    assert json.loads(seen["workerpool0-0"]["CLUSTER_SPEC"])["task"] == {"type": "workerpool0", "index": 0}


def test_ports_are_reserved_until_the_replicas_start_and_free_afterwards(
    message: Callable[..., dict[str, Any]],
) -> None:
    job = jobs.read_job(message(("1", 1), ("1", 3)), region="us-central1", warn=print)
    with reserve_addresses(job) as addresses:
        ports = [int(address.rpartition(":")[2]) for address in addresses.values()]
        for port in ports:
            with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
                other.bind(("127.0.0.1", port))
    for port in ports:
        with socket.socket() as other:
            other.bind(("127.0.0.1", port))


def test_the_folders_of_the_outputs_exist_before_a_replica_starts(
    message: Callable[..., dict[str, Any]], run: Callable[..., jobs.Outcome], tmp_path: Path
) -> None:
    names = ("AIP_MODEL_DIR", "AIP_CHECKPOINT_DIR", "AIP_TENSORBOARD_LOG_DIR")
    program = f"import os\nfor name in {names}: open(os.environ[name] + 'x', 'w').close()"
    outcome = run(message((program, 1)))
    assert outcome.state is jobs.JobState.SUCCEEDED, outcome.error
    written = {each.parent.relative_to(tmp_path / "out").as_posix() for each in (tmp_path / "out").rglob("x")}
    assert written == {"model", "checkpoints", "logs"}


def test_replicas_with_googles_pytorch_image_get_the_variables_of_torch_distributed(
    environments: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "7")
    image = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    seen = environments(1, 2, 0, 1, image=image)
    chief = json.loads(seen["workerpool0-0"]["CLUSTER_SPEC"])["cluster"]["workerpool0"][0].split(":")
    found = {name: [each[variable] for variable in names] for name, each in seen.items()}
    assert found == {
        "workerpool0-0": ["0", "3", *chief],
        "workerpool1-0": ["1", "3", *chief],
        "workerpool1-1": ["2", "3", *chief],
        "workerpool3-0": [None] * 4,
    }
    # A job of one replica does not have them (GiGL#9), and other images are the user's own.
    for others in (environments(1, image=image), environments(1, 1)):
        assert all(each[variable] is None for each in others.values() for variable in names)
