"""The finished steps of a resumed run: their outputs come from the record, all other steps start again."""

import json
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.processes.sinks import MASK
from localvertex.store import record
from localvertex.store.task import State, Task, Values

_NOTE = "finished before the run was resumed"


class FinishedSteps:
    """The steps that a record shows as SUCCEEDED, SKIPPED or GIVEN, by path; none for a new run."""

    def __init__(self, content: JsonObject, run_dir: Path) -> None:
        done = (State.SUCCEEDED, State.SKIPPED, State.GIVEN)
        tasks = [each for each in content.get("tasks", []) if each["kind"] == "step" and each["state"] in done]
        self._entries = {each["path"]: each for each in [*content.get(record.UNRESTORED, []), *tasks]}
        self._run_dir = run_dir
        self.num_resumes = len(content["resume_times"]) + 1 if content else 0
        """How often the run has been resumed."""

    @property
    def left(self) -> list[JsonObject]:
        """Return the entries of the steps that the run has not reached: it may be killed before it does."""
        return list(self._entries.values())

    def restore(self, task: Task, upstream: list[Task]) -> bool:
        """Restore state and outputs of a step before it is started; return false when it has to run.

        It has to when a step before it runs again, as for an exit task after a failure that is now repaired, or when
        its inputs have changed.
        """
        entry = self._entries.pop(task.label, None)
        is_restored = entry is not None and self._restore(task, upstream, entry)
        task.num_resumes = entry.get("num_resumes", 0) if is_restored and entry else self.num_resumes
        return is_restored

    def _restore(self, task: Task, upstream: list[Task], entry: JsonObject) -> bool:
        if not _is_undisturbed(task, upstream, entry.get("num_resumes", 0)):
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
        task.custom_job, task.memory = entry.get("custom_job"), entry.get("memory")
        task.state, task.note, task.is_restored = State(entry["state"]), _NOTE, True
        return True


def _is_undisturbed(task: Task, upstream: list[Task], num_resumes: int) -> bool:
    """Return whether no upstream task, in this dag or in the surrounding ones, has run since that resume."""
    if not all(_is_older(each, num_resumes) for each in upstream):
        return False
    return task.parent is None or _is_undisturbed(task.parent, task.parent.upstream, num_resumes)


def _is_older(task: Task, num_resumes: int) -> bool:
    """Return whether a final task and all tasks below it were restored, and had run by that resume."""
    if task.is_step:
        return (task.is_restored and task.num_resumes <= num_resumes) or task.state is State.NOT_TRIGGERED
    return all(_is_older(child, num_resumes) for child in task.children.values())
