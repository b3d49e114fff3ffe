"""The finished steps of a resumed run: their outputs come from the record, all other steps start again."""

import json
from pathlib import Path
from typing import Any

from localvertex.processes.sinks import MASK
from localvertex.state import record
from localvertex.state.task import State, Task, Values

_NOTE = "finished before the run was resumed"


class FinishedSteps:
    """The steps that a record shows as SUCCEEDED or SKIPPED, by path; empty for a new run."""

    def __init__(self, tasks: list[dict[str, Any]], run_dir: Path) -> None:
        done = (State.SUCCEEDED, State.SKIPPED)
        self._entries = {each["path"]: each for each in tasks if each["kind"] == "step" and each["state"] in done}
        self._run_dir = run_dir

    def restore(self, task: Task, upstream: list[Task]) -> bool:
        """Restore the state and outputs of a step; return false when it has to run again.

        It has to when a step before it runs again, as for an exit task after a failure that is now repaired, or when
        its inputs have changed.
        """
        entry = self._entries.get(task.label)
        if entry is None or not _is_undisturbed(task, upstream):
            return False
        if entry["inputs"] != json.loads(json.dumps(record.of_values(task.inputs), default=str)):
            return False
        outputs = entry["outputs"]
        if MASK in json.dumps(outputs):
            return False  # The record does not have the secret in it.
        task.outputs = Values(parameters=outputs["parameters"], artifacts=outputs["artifacts"])
        task.attempts, task.exit_code = entry["attempts"], entry["exit_code"]
        task.started_at, task.ended_at = record.seconds_of(entry["start_time"]), record.seconds_of(entry["end_time"])
        task.log = self._run_dir / entry["log"] if entry["log"] else None
        task.custom_job = entry.get("custom_job")
        task.state, task.note, task.is_restored = State(entry["state"]), _NOTE, True
        return True


def _is_undisturbed(task: Task, upstream: list[Task]) -> bool:
    """Return whether no upstream task, in this dag or in the surrounding ones, has run since the resume."""
    if not all(_was_restored(each) for each in upstream):
        return False
    return task.parent is None or _is_undisturbed(task.parent, task.parent.upstream)


def _was_restored(task: Task) -> bool:
    """Return whether a final task and all tasks below it are unchanged since the resume."""
    if task.is_step:
        return task.is_restored or task.state is State.NOT_TRIGGERED
    return all(_was_restored(child) for child in task.children.values())
