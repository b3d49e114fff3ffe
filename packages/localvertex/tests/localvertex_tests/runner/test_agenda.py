"""The scheduler looks at what an event concerns, in the order of the tree."""

from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from localvertex.runner.scheduler import Scheduler
from vertex_testing.runs import STEP, Execute


@dsl.component(**STEP)
def note(log: str, name: str, number: int) -> int:
    with open(log, "a") as file:
        file.write(f"{name}{number} ")
    return number


@dsl.pipeline(name="nested")
def nested(log: str, numbers: list) -> None:
    with dsl.ParallelFor(numbers) as number:
        first = note(log=log, name="a", number=number)
        note(log=log, name="b", number=first.output)
    note(log=log, name="c", number=0)


def test_an_iteration_is_finished_before_the_next_one_starts(execute: Execute, tmp_path: Path) -> None:
    log = tmp_path / "log"
    record = execute(nested, {"log": str(log), "numbers": [1, 2, 3]}, max_parallel=1, use_cache=False)
    assert record["state"] == "SUCCEEDED"
    order = log.read_text().split()
    assert [each for each in order if each != "c0"] == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_the_work_of_the_scheduler_does_not_grow_with_the_square_of_the_tasks(
    execute: Execute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    settle = Scheduler.settle_pending

    def counted(self: Scheduler, *arguments: Any, **options: Any) -> None:
        nonlocal looks
        looks += 1
        settle(self, *arguments, **options)

    monkeypatch.setattr(Scheduler, "settle_pending", counted)
    # All iterations but the first take their outputs from the cache: no process is started.
    record = execute(nested, {"log": str(tmp_path / "log"), "numbers": [1] * 100}, max_parallel=2)
    assert record["state"] == "SUCCEEDED"
    # A step is looked at when its upstream tasks are final, and when there is room for it.
    assert looks <= 2 * len(record["tasks"])
