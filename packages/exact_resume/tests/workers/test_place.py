"""The place of a worker, from each variable alone and from several that agree or contradict each other."""

import json
from typing import Any

import pytest

from exact_resume.errors import InputError
from exact_resume.workers import place
from exact_resume.workers.place import Place


def tensorflow(kind: str = "worker", index: int = 0, **cluster: list[str]) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


def vertex(kind: str, index: Any, **cluster: list[str]) -> dict[str, str]:
    return {"CLUSTER_SPEC": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


def torch(rank: Any, count: Any, **more: str) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "first", "MASTER_PORT": "1", **more}


POOLS = {"workerpool0": ["a:2222"], "workerpool1": ["b:2222", "c:2222"], "workerpool2": ["d:2222"]}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Place()),
        (tensorflow("chief", chief=["a:1"], worker=["b:1"]), Place(rank=0, num_workers=2, host="a")),
        (tensorflow("worker", 0, chief=["a:1"], worker=["b:1"]), Place(rank=1, num_workers=2, host="a")),
        (tensorflow("worker", 1, worker=["a:1", "b:1"]), Place(rank=1, num_workers=2, host="a")),
        (tensorflow("worker", 1, worker=["[::1]:1", "[::1]:2"]), Place(rank=1, num_workers=2, host="::1")),
        (tensorflow("worker", 0, worker=["a:1"]), Place()),
        (vertex("workerpool1", "1", **POOLS), Place(rank=2, num_workers=3, host="a")),
        (vertex("workerpool0", 0, workerpool0=["a:1"]), Place()),
        (torch(1, 2), Place(rank=1, num_workers=2, host="first")),
        ({"RANK": "0", "WORLD_SIZE": "1"}, Place()),
        # Vertex AI sets several.
        (torch(2, 3) | vertex("workerpool1", 1, **POOLS), Place(rank=2, num_workers=3, host="first")),
        # Two processes on each machine; torchrun numbers machines in another order.
        (torch(5, 6) | vertex("workerpool1", 1, **POOLS), Place(rank=5, num_workers=6, host="first")),
        (torch(0, 6, LOCAL_WORLD_SIZE="2") | vertex("workerpool1", 1, **POOLS), Place(num_workers=6, host="first")),
    ],
)
def test_the_place_of_a_worker(environment: dict[str, str], expected: Place) -> None:
    assert place.read(environment) == expected


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (tensorflow("evaluator", worker=["a:1", "b:1"]), "TF_CONFIG has an evaluator or parameter servers"),
        (tensorflow("chief", chief=["a:1"], ps=["b:1"]), "TF_CONFIG has an evaluator or parameter servers"),
        (tensorflow("worker", 2, worker=["a:1", "b:1"]), "field task.index is '2', but cluster.worker has 2"),
        ({"CLUSTER_SPEC": "[]"}, "CLUSTER_SPEC is '.*'; expected JSON with the fields cluster and task"),
        ({"CLUSTER_SPEC": "{"}, "CLUSTER_SPEC is '{'; expected JSON"),
        (vertex("workerpool2", 0, **POOLS), "task, of workerpool0 or workerpool1"),
        (
            vertex("workerpool1", 2, **POOLS),
            "CLUSTER_SPEC as TF_CONFIG: field task.index is '2', but cluster.worker has 2",
        ),
        (vertex("workerpool1", "one", **POOLS), "CLUSTER_SPEC as TF_CONFIG: field task.index is 'one'"),
        (torch(2, 2), "RANK is '2', WORLD_SIZE '2' and MASTER_ADDR 'first'; expected numbers"),
        ({"WORLD_SIZE": "2"}, "RANK is '', WORLD_SIZE '2' and MASTER_ADDR ''; expected numbers"),
        ({"RANK": "1", "WORLD_SIZE": "2"}, "WORLD_SIZE '2' and MASTER_ADDR ''; expected"),
        (
            torch(0, 1) | tensorflow("worker", 1, worker=["a:1", "b:1"]),
            "RANK and WORLD_SIZE: worker 0 of 1, but TF_CONFIG: worker 1 of 2; expected",
        ),
        (torch(0, 3) | vertex("workerpool1", 1, **POOLS), "worker 0 of 3, but CLUSTER_SPEC: worker 2 of 3"),
        (
            tensorflow("worker", 1, worker=["a:1", "b:1"]) | vertex("workerpool1", 1, **POOLS),
            "TF_CONFIG: worker 1 of 2, but CLUSTER_SPEC: worker 2 of 3; expected the same",
        ),
    ],
)
def test_a_wrong_or_contradictory_variable_is_refused_by_name(environment: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        place.read(environment)
