"""The curves of a replica: what is new, thinned out however long the training is, and what restarts made of it."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from localvertex.jobs.goodput import event_files
from localvertex.jobs.goodput.event_files import EventFiles
from localvertex.show.view.live import MAX_POINTS, Curve

Event = dict[str, Any]


def steps(first: int, last: int, **fields: Any) -> Event:
    return {"event": "steps", "time": 100.0 + last, "first_step": first, "last_step": last, "seconds": 1.0, **fields}


def test_each_point_is_given_once() -> None:
    curve = Curve()
    assert curve.new() is None
    curve.add(steps(1, 2, loss=0.5, accuracy=0.25, images_per_second=64, seconds_left=8, note="x"))
    found = curve.new()
    assert found == {
        "names": ["accuracy", "images_per_second", "loss", "seconds", "seconds_left"],
        "points": [[2, 102.0, 0.25, 64.0, 0.5, 1.0, 8.0]],
        "evaluated": [],
        "resumes": [],
        "is_first": True,
    }
    assert curve.new() is None
    curve.add(steps(3, 4, loss=float("nan"), accuracy="x", learning_rate=0.01))
    found = curve.new()
    assert found is not None
    assert found["names"][5:] == ["learning_rate"]
    assert (found["points"], found["is_first"]) == ([[4, 104.0, None, None, None, 1.0, None, 0.01]], False)


def test_validation_has_points_of_its_own_and_names_are_few() -> None:
    curve = Curve()
    curve.add(steps(1, 2, loss=0.5, epoch=0.5))
    validation = {"event": "evaluate", "time": 103.0, "split": "validation", "step": 2, "epoch": 1.0, "is_best": True}
    curve.add(validation | {"loss": 0.25})
    curve.add(validation | {"split": "test", "loss": 9.0})
    found = curve.new()
    assert found is not None
    values = dict(zip(found["names"], found["evaluated"][0][2:], strict=True))
    assert {name: value for name, value in values.items() if value is not None} == {
        "validation_epoch": 1.0,
        "validation_loss": 0.25,
    }
    assert len(found["evaluated"]) == 1
    curve.add(steps(3, 4, **{f"figure_{n}": float(n) for n in range(100)}))
    found = curve.new()
    assert found is not None
    assert (len(found["names"]), len(found["points"][0])) == (30, 32)


def test_a_restart_shows_from_where_it_resumed() -> None:
    curve = Curve()
    for event in (
        {"event": "start", "time": 1.0},
        steps(1, 10),
        steps(11, 20),
        {"event": "start", "time": 200.0},
        {"event": "restore", "time": 201.0, "step": 15},
        steps(16, 25, time=210.0),
        {"event": "start", "time": 300.0},
        steps(21, 30, time=310.0),
    ):
        curve.add(event)
    found = curve.new()
    assert found is not None
    assert found["resumes"] == [(200.0, 15), (300.0, 20)]
    assert [point[0] for point in found["points"]] == [10, 20, 25, 30]


def test_a_training_of_a_hundred_thousand_steps_is_a_few_points(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / "events" / "workerpool0-0.jsonl"
    path.parent.mkdir(parents=True)
    events, curve = EventFiles.of_job(str(tmp_path), ["workerpool0-0"]), Curve()
    events.listen = lambda name, event: curve.add(event)
    lines = (steps(n - 3, n, time=float(n), loss=n - 1.5, num_steps=100_000) for n in range(4, 100_001, 4))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert events.poll()
    found = curve.new()
    assert found is not None
    assert found["is_first"]
    assert MAX_POINTS / 4 < len(found["points"]) <= MAX_POINTS
    # The points are those of the log, and one of the last ones is there.
    assert found["points"][-1][0] > 99_900
    assert all(point[2] == point[0] - 1.5 for point in found["points"])
    for before, after in pairwise(found["points"]):
        assert 0 < after[0] - before[0] < 100_000 / 100
    kept = events.of("workerpool0-0")
    assert len(kept) <= event_files.MAX_EVENTS
    assert sum(each["seconds"] for each in kept) == pytest.approx(25_000)


def test_what_was_sent_is_sent_again_after_it_was_thinned_out() -> None:
    curve = Curve()
    for n in range(1, MAX_POINTS):
        curve.add(steps(n, n))
    assert curve.new()
    for n in range(MAX_POINTS, MAX_POINTS + 10):
        curve.add(steps(n, n))
    found = curve.new()
    assert found is not None
    assert found["is_first"]
    assert found["points"][-1][0] == MAX_POINTS + 9
    assert len(found["points"]) < MAX_POINTS


def test_steps_at_distances_and_many_restarts_are_few_points_too() -> None:
    curve = Curve()
    for n in range(1, 5 * MAX_POINTS):
        curve.add({"event": "start", "time": 10.0 * n + 1})
        curve.add(steps(10 * n, 10 * n, time=10.0 * n + 2, loss=float(n)))
    found = curve.new()
    assert found is not None
    assert len(found["points"]) <= MAX_POINTS
    assert len(found["resumes"]) == 5 * MAX_POINTS - 2
    times = [point[1] for point in found["points"]]
    assert times == sorted(times)


def test_joined_steps_keep_the_sums_and_weigh_the_means() -> None:
    pair = [
        steps(1, 3, seconds=3.0, loss=1.0, images_per_second=10.0),
        steps(4, 4, seconds=1.0, loss=5.0, accuracy=0.5, images_per_second=50.0, seconds_left=7.0),
    ]
    first = steps(0, 0)
    _, found = event_files.thin_out([first, *pair])
    assert found["seconds"] == 4.0
    assert (found["first_step"], found["last_step"], found["time"]) == (1, 4, 104.0)
    assert (found["loss"], found["accuracy"], found["images_per_second"]) == (2.0, 0.5, 20.0)
    assert found["seconds_left"] == 7.0
    save = {"event": "save", "time": 103.5}
    assert event_files.thin_out([first, pair[0], save, pair[1]]) == [first, pair[0], save, pair[1]]
    assert event_files.thin_out(pair) == pair, "the first steps of a process stay as they are"
    assert event_files.thin_out([first, {**pair[0], "last_step": "x"}, pair[1]])[2] == pair[1]
