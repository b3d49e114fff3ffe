"""A pipeline whose last step waits, and what tests ask about the journal of its run."""

from collections.abc import Callable
from pathlib import Path

from kfp import dsl

from localvertex.runner.display import Display
from localvertex.store.task import Task
from vertex_testing.runs import STEP, Record


@dsl.component(**STEP)
def double(number: int) -> int:
    return 2 * number


@dsl.component(**STEP)
def wait_for(there: str, result: int) -> int:
    import os
    import time

    while not os.path.exists(there):
        time.sleep(0.01)
    return result


@dsl.pipeline(name="journaled")
def journaled(there: str, numbers: list) -> int:
    with dsl.ParallelFor(numbers) as number:
        done = double(number=number)
    return wait_for(there=there, result=7).after(done).output


class Listener(Display):
    """Calls a function at each change of a step."""

    def __init__(self, changed: Callable[[Task], None]) -> None:
        self._changed = changed

    def on_change(self, task: Task) -> None:
        """Call it."""
        if task.is_step:
            self._changed(task)


def states(content: Record) -> dict[str, str]:
    """Return the state of each task by its path."""
    return {each["path"]: each["state"] for each in content["tasks"]}


def journal_of(run_dir: Path) -> Path:
    """Return the journal of a run, which has one."""
    (path,) = run_dir.glob("journal-*.jsonl")
    return path
