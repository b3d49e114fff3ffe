import json

import pytest

from trainer.cluster import cluster
from userinput.errors import UserError

TWO = {"chief": ["a:1"], "worker": ["b:2"]}
SERVERS = {**TWO, "ps": ["c:3"]}


def read(machines, kind="chief", index=0, forced="auto", **more):
    config = {"cluster": machines, "task": {"type": kind, "index": index}, "environment": "cloud", **more}
    return cluster.read({"TF_CONFIG": json.dumps(config)}, forced)


def test_without_tf_config_one_machine_trains():
    alone = cluster.read({})
    assert (alone.strategy, alone.num_workers, alone.is_chief, alone.is_evaluator) == ("auto", 1, True, False)
    assert cluster.read({"TF_CONFIG": " "}) == alone
    assert read({"chief": ["a:1"]}) == alone


@pytest.mark.parametrize(
    ("machines", "kind", "index", "is_chief"),
    [
        (TWO, "chief", 0, True),
        (TWO, "worker", 0, False),
        ({"worker": ["a:1", "b:2"]}, "worker", 0, True),
        ({"worker": ["a:1", "b:2"]}, "worker", 1, False),
        ({"master": ["a:1"], "worker": ["b:2"]}, "master", 0, True),
        ({"master": ["a:1"], "worker": ["b:2"]}, "worker", "0", False),
    ],
)
def test_chief_is_the_chief_or_worker_0_where_there_is_none(machines, kind, index, is_chief):
    found = read(machines, kind, index)
    assert (found.is_chief, found.num_workers, found.strategy) == (is_chief, 2, "multi-worker-mirrored")


def test_parameter_servers_are_seen_and_a_reduction_server_is_not_one():
    assert read(SERVERS).strategy == "parameter-server"
    assert read(SERVERS).num_workers == 2
    image = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    job = {"workerPoolSpecs": [{}, {}, {"containerSpec": {"imageUri": image}}]}
    for given in (job, json.dumps(job)):
        found = read(SERVERS, "worker", job=given)
        assert found.strategy == "multi-worker-mirrored"
        assert "ps" not in found.addresses
    assert read(SERVERS, forced="multi-worker-mirrored").addresses == {"chief": ("a:1",), "worker": ("b:2",)}


def test_an_evaluator_is_no_chief_and_is_not_in_the_cluster():
    found = read(TWO, "evaluator")
    assert found.is_evaluator
    assert not found.is_chief
    # Also beside a single machine, where the cluster has the chief alone.
    assert read({"chief": ["a:1"]}, "evaluator").is_evaluator


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "TF_CONFIG is not JSON"),
        ("[]", "TF_CONFIG is a JSON list; expected an object"),
        ('{"cluster": [3]}', r"field cluster is \[3\]; expected an object"),
        ('{"cluster": {"boss": ["a:1"]}}', r"field cluster.boss is not known; expected chief, worker or ps"),
        ('{"cluster": {"worker": "a:1"}}', r"field cluster.worker is 'a:1'; expected a list of host:port"),
        ('{"cluster": {"worker": ["a"]}}', r"field cluster.worker is \['a'\]; expected a list of host:port"),
        ('{"cluster": {"chief": ["a:1", "b:1"]}}', "field cluster.chief has 2 addresses; expected one"),
        ('{"cluster": {"chief": ["a:1"], "master": ["b:1"]}}', "cluster.master and cluster.chief are both there"),
        ('{"cluster": {"chief": ["a:1"]}, "task": {"type": "boss"}}', "field task.type is 'boss'"),
        ('{"cluster": {"chief": ["a:1"]}, "task": 3}', "field task.type is None"),
        ('{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief"}}', "field task.index is None; expected a number"),
        ('{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 1}}', "cluster.chief has 1 addresses"),
        (
            '{"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type": "ps", "index": 0}}',
            "cluster.chief is missing",
        ),
    ],
)
def test_a_wrong_tf_config_is_told_by_its_field(text, told):
    with pytest.raises(UserError, match=told):
        cluster.read({"TF_CONFIG": text})


@pytest.mark.parametrize(
    ("machines", "kind", "forced", "told"),
    [
        (TWO, "chief", "parameter-server", "TF_CONFIG names none"),
        (TWO, "chief", "mirrored", "is for one machine, and TF_CONFIG names 2"),
        ({"chief": ["a:1"], "ps": ["c:3"]}, "ps", "one-device", "is for one machine, and TF_CONFIG names 2"),
        (TWO, "worker", "one-device", "is for one machine, and TF_CONFIG names 2"),
        (SERVERS, "ps", "multi-worker-mirrored", "field task.type is 'ps', but this job has no parameter servers"),
    ],
)
def test_a_forced_strategy_has_to_go_with_the_machines(machines, kind, forced, told):
    with pytest.raises(UserError, match=told):
        read(machines, kind, forced=forced)
