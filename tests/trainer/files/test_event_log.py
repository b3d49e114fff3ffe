import json

import pytest

from trainer.cluster.cluster import Cluster
from trainer.cluster.signals import StopRequest
from trainer.files import event_log as events
from trainer.files import observers
from trainer.files.event_log import EventLog
from trainer.loop.pace import Pace

STEPS = {
    "first_step": 1, "last_step": 8, "num_steps": 80, "loss": 0.5, "accuracy": 0.75, "seconds": 2.0,
    "images_per_second": 1234.5, "learning_rate": 0.001, "epoch": 0.4,
}  # fmt: skip


def test_lines_of_all_replicas_come_back_in_order_of_time(tmp_path):
    EventLog(str(tmp_path), "workerpool0-0").write("start", model="convnet")
    EventLog(str(tmp_path), "workerpool1-0").write("start", model="convnet")
    EventLog(str(tmp_path), "workerpool0-0").write("exit", code=0)
    found = events.read(str(tmp_path))
    assert [(event["replica"], event["event"]) for event in found] == [
        ("workerpool0-0", "start"), ("workerpool1-0", "start"), ("workerpool0-0", "exit"),
    ]  # fmt: skip


def test_a_line_cut_short_by_a_kill_is_left_out(tmp_path):
    EventLog(str(tmp_path), "workerpool0-0").write("start")
    with (tmp_path / "events" / "workerpool0-0.jsonl").open("a") as file:
        file.write('{"time": 1, "ev')
    assert [event["event"] for event in events.read(str(tmp_path))] == ["start"]


def test_a_writer_after_a_killed_one_starts_a_line_of_its_own(tmp_path):
    log = EventLog(str(tmp_path), "workerpool0-0")
    log.write("start")
    with (tmp_path / "events" / "workerpool0-0.jsonl").open("a") as file:
        file.write('{"time": 1, "ev')
    EventLog(str(tmp_path), "workerpool0-0").write("restore", step=3)
    assert [event["event"] for event in events.read(str(tmp_path))] == ["start", "restore"]


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
def test_a_replica_is_named_as_vertex_names_it(value, task, name):
    addresses = {"chief": ("a:1",), "worker": ("b:1", "c:1"), "ps": ("d:1", "e:1")}
    text = value if isinstance(value, str) else json.dumps(value)
    environment = {} if value is None else {"CLUSTER_SPEC": text}
    cluster = Cluster(addresses=addresses, task_type=task[0], task_index=task[1])
    assert events.replica_name(environment, cluster) == name


def test_without_a_chief_worker_0_is_the_first_pool():
    addresses = {"worker": ("a:1", "b:1")}
    names = [
        events.replica_name({}, Cluster(addresses=addresses, task_type="worker", task_index=index)) for index in (0, 1)
    ]
    assert names == ["workerpool0-0", "workerpool1-0"]
    assert events.replica_name({}, Cluster()) == "workerpool0-0"


def test_plain_lines_are_limited_for_steps_but_not_for_validations(capsys):
    now = [0.0]
    observe = observers.PlainLines(clock=lambda: now[0])
    for second in range(25):
        now[0] = float(second)
        observe("steps", **STEPS)
    observe("evaluate", epoch=1.0, loss=0.5, accuracy=0.75, is_best=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["step 8/80  loss 0.5000  accuracy 0.7500  1,234 img/s"] * 3 + [
        "epoch 1  validation loss 0.5000  accuracy 0.7500  best so far"
    ]


def test_the_progress_bar_shows_rate_and_place(capsys):
    bar = observers.ProgressBar(80)
    bar("start", model="convnet", num_steps=80, steps_per_epoch=20, run_id="abc")
    bar("steps", **STEPS)
    bar("exit", code=0)
    shown = capsys.readouterr().err
    assert "8/80" in shown
    assert "training convnet for 80 steps" in shown


def test_a_call_is_as_long_as_the_time_allows_and_grows_step_by_step():
    pace = Pace(target_seconds=2.0)
    assert pace.num_steps == 1
    pace.record(1, 5.0)
    assert pace.num_steps == 1
    pace.record(1, 0.001)
    assert pace.num_steps == 4
    pace.record(4, 0.004)
    assert pace.num_steps == 16
    pace.record(16, 16.0)
    assert pace.num_steps == 2


def test_a_stop_request_knows_its_exit_code():
    request = StopRequest()
    assert not request.is_set
    request._remember(15, None)
    assert (request.is_set, request.exit_code, request.signal_name) == (True, 143, "SIGTERM")
    with pytest.raises(KeyboardInterrupt):
        request._remember(2, None)
