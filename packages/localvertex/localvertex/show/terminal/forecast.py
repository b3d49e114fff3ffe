"""How long a run will still take, from the last run of the same pipeline that computed something."""

import math
import time
from contextlib import suppress
from pathlib import Path

from localvertex._base.compiled.load import load
from localvertex._base.compiled.spec import Component, Pipeline, TaskSpec
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.store import outcome, record, run_folder
from localvertex.store.task import State, Task

_MAX_READ = 20
"""Runs of the work folder that are read, the newest first; records of large runs take seconds."""


class Forecast:
    """The compiled file of a run, and the times of an earlier one.

    Args:
        pipeline: The pipeline.
        earlier: The record of the earlier run; None without one.
    """

    def __init__(self, pipeline: Pipeline, earlier: JsonObject | None) -> None:
        self._pipeline, self.run_id, self._ends = pipeline, "", 0.0
        self._spans: dict[str, tuple[float, float]] = {}
        """Start and end of each step of the earlier run, by path, in seconds since it started."""
        if earlier:
            self.run_id = earlier["run_id"]
            for task in earlier["tasks"]:
                start, end = (record.seconds_of(task[name]) for name in ("start_time", "end_time"))
                if task["kind"] == "step" and start is not None and end is not None:
                    self._spans[task["path"]] = start, end
            self._ends = max((end for _, end in self._spans.values()), default=0.0)

    @classmethod
    def of(cls, run_dir: Path) -> "Forecast | None":
        """Return the forecast for a run that starts; None when its file cannot be read."""
        try:
            pipeline = load(run_folder.pipeline_copy(run_dir)).pipeline
        except (UserError, OSError):
            return None
        found: list[tuple[float, Path]] = []
        for each in run_dir.parent.glob(f"*/{record.FILE}"):
            with suppress(OSError):
                found.append((each.stat().st_mtime, each.parent))
        for _, folder in sorted(found, reverse=True)[:_MAX_READ]:
            with suppress(OSError, ValueError, LookupError, TypeError):
                content = record.read(folder)
                is_same = content["pipeline_name"] == pipeline.name and content["state"] == State.SUCCEEDED
                # A resumed run has waited between its steps.
                is_whole = not content["resume_times"] and not any(map(outcome.has_nothing_new, content["tasks"]))
                if folder != run_dir and is_same and is_whole:
                    return cls(pipeline, content)
        return cls(pipeline, None)

    def num_closed(self, root: Task) -> float:
        """Return the number of steps in dags that are not open yet; infinite with a loop, whose items are unknown."""
        closed = [each for each in root.walk() if not (each.is_step or each.children or each.state.is_final)]
        return sum(self._num_steps(each.spec, each.component) for each in closed)

    def _num_steps(self, spec: TaskSpec, component: Component) -> float:
        if spec.iterator is not None:
            return math.inf
        if component.dag is None:
            return 1
        components = self._pipeline.components
        return sum(self._num_steps(each, components[each.component]) for each in component.dag.tasks.values())

    def seconds_left(self, root: Task) -> float | None:
        """Return the seconds until the end of the run; None if a running step is not known from the earlier run.

        What followed a step in the earlier run follows it now, in the same time. A training knows its own pace.
        """
        running = [each for each in root.walk() if each.is_step and each.state is State.RUNNING]
        if not running or any(each.label not in self._spans for each in running):
            return None
        return max(map(self._seconds_after, running))

    def _seconds_after(self, task: Task) -> float:
        start, end = self._spans[task.label]
        replicas = (task.custom_job or {}).get("replicas", [])
        paces = [each["seconds_left"] for each in replicas if each["is_running"] and each.get("seconds_left")]
        elapsed = time.time() - (task.started_at or 0.0)
        return max(paces, default=max(end - start - elapsed, 0.0)) + self._ends - end
