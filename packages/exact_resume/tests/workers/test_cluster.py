"""TF_CONFIG as Vertex AI sets it, and as users get it wrong."""

import json
from typing import Any

import pytest

from exact_resume.errors import InputError
from exact_resume.workers import cluster
from exact_resume.workers.cluster import Cluster

TWO = {"chief": ["a:1"], "worker": ["b:2"]}
SERVERS = {**TWO, "ps": ["c:3"]}


def read(machines: dict[str, list[str]], kind: str = "chief", index: int | str = 0, **more: Any) -> Cluster:
    config = {"cluster": machines, "task": {"type": kind, "index": index}, "environment": "cloud", **more}
    return cluster.read({"TF_CONFIG": json.dumps(config)})


def test_without_tf_config_one_machine_trains() -> None:
    alone = cluster.read({})
    assert (alone.has_parameter_servers, alone.num_workers, alone.is_chief, alone.is_evaluator) == (
        False,
        1,
        True,
        False,
    )
    assert cluster.read({"TF_CONFIG": " "}) == alone
    assert read({"chief": ["a:1"]}) == alone


@pytest.mark.parametrize(
    ("machines", "kind", "index", "is_chief"),
    [
        (TWO, "chief", 0, True),
        (TWO, "worker", 0, False),
        ({"worker": ["a:1", "b:2"]}, "worker", 0, True),
        ({"worker": ["a:1", "b:2"]}, "worker", 1, False),
        (TWO, "worker", "0", False),
    ],
)
def test_the_chief_is_task_chief_or_else_worker_0(
    machines: dict[str, list[str]], kind: str, index: int | str, is_chief: bool
) -> None:
    found = read(machines, kind, index)
    assert (found.is_chief, found.num_workers, found.has_parameter_servers) == (is_chief, 2, False)


def test_a_reduction_server_is_not_taken_for_a_parameter_server() -> None:
    assert read(SERVERS).has_parameter_servers
    assert read(SERVERS).num_workers == 2
    image = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    job = {"workerPoolSpecs": [{}, {}, {"containerSpec": {"imageUri": image}}]}
    for given in (job, json.dumps(job)):
        found = read(SERVERS, "worker", job=given)
        assert found.addresses == {"chief": ("a:1",), "worker": ("b:2",)}
    with pytest.raises(InputError, match=r"field task.type is 'ps', but this job has a Reduction Server"):
        read(SERVERS, "ps", job=job)


def test_an_evaluator_is_not_the_chief_and_not_in_the_cluster() -> None:
    found = read(TWO, "evaluator")
    assert found.is_evaluator
    assert not found.is_chief
    # Also beside a single machine, where the cluster has the chief alone.
    assert read({"chief": ["a:1"]}, "evaluator").is_evaluator


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "TF_CONFIG is '{'; expected a JSON object with the fields cluster and task"),
        ("[]", r"TF_CONFIG is '\[\]'; expected a JSON object"),
        ('{"cluster": [3]}', r"field cluster is \[3\]; expected an object"),
        ('{"cluster": {"boss": ["a:1"]}}', r"field cluster.boss is not known; expected chief, worker or ps"),
        ('{"cluster": {"worker": "a:1"}}', r"field cluster.worker is 'a:1'; expected a list of host:port"),
        ('{"cluster": {"worker": ["a"]}}', r"field cluster.worker is \['a'\]; expected a list of host:port"),
        ('{"cluster": {"worker": ["a:1\\n"]}}', "field cluster.worker is "),
        ('{"cluster": {"worker": [null]}}', "field cluster.worker is "),
        ("[" * 10_000, "expected a JSON object"),
        ('{"task": {"index": ' + "9" * 5000 + "}}", "expected a JSON object"),
        ('{"cluster": {"chief": ["a:1"]}, "task": {"type": "boss"}}', "field task.type is 'boss'"),
        ('{"cluster": {"chief": ["a:1"]}, "task": 3}', "field task.type is None"),
        *(
            (
                f'{{"cluster": {{"chief": ["a:1"]}}, "task": {{"type": "chief"{index}}}}}',
                "cluster.chief has 1 addresses",
            )
            for index in ("", *(f', "index": {i}' for i in ("1", "0.7", "1e400", "NaN", "true", '"-0"', "[0]", '""')))
        ),
        (
            '{"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type": "ps", "index": 0}}',
            "cluster.chief is missing",
        ),
    ],
)
def test_an_invalid_tf_config_is_refused_by_naming_the_field(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cluster.read({"TF_CONFIG": text})
