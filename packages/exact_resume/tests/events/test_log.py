"""The event log: one line per event, in a file or in parts in a bucket, read back as one."""

import json
from pathlib import Path
from typing import Any

import pytest

from exact_resume.checkpoints import result_file
from exact_resume.events import log as event_log
from exact_resume.events.log import EventLog
from exact_resume.workers.cluster import Cluster


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


@pytest.mark.parametrize(
    "line",
    [
        b"null",
        b"3",
        b'"text"',
        b"[1, 2]",
        b"{}",
        b'{"time": 1}',
        b'{"time": null, "event": "start"}',
        b'{"time": "1", "event": "start"}',
        b'{"time": true, "event": "start"}',
        b'{"time": 1e999, "event": "start"}',
        b'{"time": NaN, "event": "start"}',
        b'{"time": 1%s, "event": "start"}' % (b"0" * 400),
        b'{"time": 1, "event": null}',
        b'{"time": 1, "event": {}}',
        b'{"time": 1, "event": "steps"}',
        b'{"time": 1, "event": "steps", "first_step": 1, "last_step": null, "num_steps": 1, "seconds": 1}',
        b'{"time": 1, "event": "evaluate", "step": [1]}',
        b'{"time": 1, "event": "evaluate", "step": 1, "loss": 1, "accuracy": 1, "metric": "macro-f1", "score": "high"}',
        b"[" * 100_000,
        b"\0" * 100,
        b"\xff\xfe",
    ],
)
def test_a_line_of_any_other_shape_is_skipped_and_counted_and_fails_no_result(tmp_path: Path, line: bytes) -> None:
    log = EventLog(str(tmp_path), event_log.PRIMARY)
    steps = {"first_step": 1, "last_step": 4, "num_steps": 4, "seconds": 2.0, "loss": 0.1, "accuracy": 1.0}
    log.write("steps", **steps)
    with (tmp_path / "events" / f"{event_log.PRIMARY}.jsonl").open("ab") as file:
        file.write(line + b"\n")
    log.write("exit", code=0)
    events, num_skipped = event_log.read_complete(str(tmp_path))
    assert ([event["event"] for event in events], num_skipped) == (["steps", "exit"], 1)
    result_file.write(str(tmp_path), run_id="abc", identity={}, final_step=4, stop_reason="done", best_step=4)
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["num_skipped_lines"], event_log.steps_per_second(str(tmp_path))) == (1, 2.0)
