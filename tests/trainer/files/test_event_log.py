"""The event log: one line per event, in a file or in parts in a bucket, read back as one."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.cluster.cluster import Cluster
from trainer.files import event_log
from trainer.files.event_log import EventLog


def test_events_of_all_replicas_are_read_in_order_of_time(tmp_path: Path) -> None:
    EventLog(str(tmp_path), "workerpool0-0").write("start", model="convnet")
    EventLog(str(tmp_path), "workerpool1-0").write("start", model="convnet")
    EventLog(str(tmp_path), "workerpool0-0").write("exit", code=0)
    found = event_log.read(str(tmp_path))
    assert [(event["replica"], event["event"]) for event in found] == [
        ("workerpool0-0", "start"),
        ("workerpool1-0", "start"),
        ("workerpool0-0", "exit"),
    ]


def test_a_line_that_a_kill_cut_off_is_skipped(tmp_path: Path) -> None:
    EventLog(str(tmp_path), "workerpool0-0").write("start")
    with (tmp_path / "events" / "workerpool0-0.jsonl").open("a") as file:
        file.write('{"time": 1, "ev')
    assert [event["event"] for event in event_log.read(str(tmp_path))] == ["start"]


def test_a_restarted_writer_starts_a_new_line(tmp_path: Path) -> None:
    log = EventLog(str(tmp_path), "workerpool0-0")
    log.write("start")
    with (tmp_path / "events" / "workerpool0-0.jsonl").open("a") as file:
        file.write('{"time": 1, "ev')
    EventLog(str(tmp_path), "workerpool0-0").write("restore", step=3)
    assert [event["event"] for event in event_log.read(str(tmp_path))] == ["start", "restore"]


@pytest.mark.parametrize(
    ("value", "task", "name"),
    [
        ({"task": {"type": "workerpool1", "index": 2}}, ("worker", 5), "workerpool1-2"),
        (None, ("chief", 0), "workerpool0-0"),
        (None, ("worker", 1), "workerpool1-1"),
        (None, ("ps", 1), "workerpool2-1"),
        (None, ("evaluator", 0), "workerpool3-0"),
        ("{", ("chief", 0), "workerpool0-0"),
        ([], ("worker", 0), "workerpool1-0"),
    ],
)
def test_replicas_are_named_as_on_vertex(value: Any, task: tuple[str, int], name: str) -> None:
    addresses = {"chief": ("a:1",), "worker": ("b:1", "c:1"), "ps": ("d:1", "e:1")}
    text = value if isinstance(value, str) else json.dumps(value)
    environment = {} if value is None else {"CLUSTER_SPEC": text}
    cluster = Cluster(addresses=addresses, task_type=task[0], task_index=task[1])
    assert event_log.replica_name(environment, cluster) == name


def test_without_a_chief_worker_0_is_the_first_pool() -> None:
    addresses = {"worker": ("a:1", "b:1")}
    names = [
        event_log.replica_name({}, Cluster(addresses=addresses, task_type="worker", task_index=index))
        for index in (0, 1)
    ]
    assert names == ["workerpool0-0", "workerpool1-0"]
    assert event_log.replica_name({}, Cluster()) == "workerpool0-0"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("workerpool0-0.jsonl", ("workerpool0-0", 0)),
        ("workerpool0-0.0012.jsonl", ("workerpool0-0", 12)),
        ("a.b.jsonl", ("a.b", 0)),
        ("notes.txt", ("", 0)),
    ],
)
def test_parts_have_their_number_in_the_name(name: str, expected: tuple[str, int]) -> None:
    assert event_log.split_name(name) == expected
    if expected[0]:
        assert event_log.part_name(*expected) == name
