"""A task of a run: its state, inputs, outputs and children."""

import re
import time
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from uuid import uuid4

from localvertex._base.compiled.spec import Component, TaskSpec
from localvertex._base.json_object import JsonObject
from localvertex.containers.memory import Memory

_GENERATED_GROUP = re.compile(r"(exit-handler|condition|condition-branches|for-loop)-\d+")
"""How kfp's compiler names the dags of dsl.ExitHandler, dsl.If, dsl.Elif, dsl.Else and dsl.ParallelFor."""

Artifact = JsonObject
"""A RuntimeArtifact: name, type, uri, metadata."""


class State(StrEnum):
    """States as Vertex's PipelineTaskDetail.State names them."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    """Not run; its outputs come from the cache."""
    GIVEN = "GIVEN"
    """Not run; the user gives its outputs. Vertex has no such state, see api/pipeline_jobs/view.py."""
    NOT_TRIGGERED = "NOT_TRIGGERED"
    """Not run; its condition is false, or an upstream task has no outputs."""

    @property
    def is_final(self) -> bool:
        """Return whether this state does not change any more."""
        return self not in (State.PENDING, State.RUNNING)

    @property
    def has_outputs(self) -> bool:
        """Return whether downstream tasks can use the outputs."""
        return self in (State.SUCCEEDED, State.SKIPPED, State.GIVEN)


def title_of(path: tuple[str, ...], name: str) -> str:
    """Return the path of a task for display, whose own name is shown as `name`."""
    return "/".join([*(each for each in path[:-1] if not _GENERATED_GROUP.fullmatch(each)), name])


@dataclass(kw_only=True)
class Values:
    """Parameters and artifacts by name: the inputs or the outputs of a task."""

    parameters: JsonObject = field(default_factory=dict)
    artifacts: dict[str, list[Artifact]] = field(default_factory=dict)


@dataclass(kw_only=True, eq=False)
class Task:
    """One task of a run: a step, or a dag of further tasks. Only the scheduler's thread changes it."""

    spec: TaskSpec
    component: Component
    name: str
    path: tuple[str, ...]
    """Names from the root's children down to this task."""
    folder: Path
    parent: "Task | None" = None
    iteration: int | None = None
    """Index within a ParallelFor, None outside."""
    state: State = State.PENDING
    inputs: Values = field(default_factory=Values)
    outputs: Values = field(default_factory=Values)
    children: dict[str, "Task"] = field(default_factory=dict)
    position: tuple[int, ...] = ()
    """Indexes among the children of each level: its place in the tree, parents first."""
    attempts: int = 0
    retry_at: float | None = None
    """Monotonic time of the next attempt while one is pending."""
    started_at: float | None = None
    """Seconds since the epoch."""
    begun: tuple[float, float] | None = None
    """Time of its start in this process: seconds since the epoch, and the monotonic time."""
    ended_at: float | None = None
    idle_seconds: float = 0.0
    """Time of the run between its ends and the next resumes."""
    exit_code: int | None = None
    memory: Memory | None = None
    """The largest of its attempts."""
    log: Path | None = None
    uuid: str = field(default_factory=lambda: str(uuid4().int >> 66))
    """`{{$.pipeline_task_uuid}}`."""
    is_restored: bool = False
    """Whether it had finished before the run was resumed."""
    num_resumes: int = 0
    """How often the run had been resumed when this step ran."""
    custom_job: JsonObject | None = None
    """Status of the step's custom job; the step's own thread replaces it as a whole."""
    final_entry: JsonObject | None = None
    """Its entry in the record, once it is final."""
    error: str = ""
    note: str = ""
    """Why it did not run, or what it is waiting for."""

    @property
    def label(self) -> str:
        """Return the path as text."""
        return "/".join(self.path)

    @property
    def title(self) -> str:
        """Return the path for display: display names, without the groups that kfp names."""
        return title_of(self.path, self.spec.display_name if self.iteration is None else self.name)

    @property
    def placeholders(self) -> dict[str, str]:
        """Return the placeholders of this task."""
        return {"pipeline_task_name": self.spec.display_name, "pipeline_task_uuid": self.uuid}

    @property
    def upstream(self) -> list["Task"]:
        """Return the siblings that this task depends on; an iteration of a loop depends on none."""
        siblings = self.parent.children if self.parent and not self.parent.is_loop else {}
        return [siblings[name] for name in self.spec.dependencies if name in siblings]

    @property
    def runs_after_failure(self) -> bool:
        """Return whether this task, or one that contains it, also runs after a failure."""
        return self.spec.runs_after_failure or (self.parent is not None and self.parent.runs_after_failure)

    @property
    def is_loop(self) -> bool:
        """Return whether this is a ParallelFor, whose children are its iterations."""
        return self.spec.iterator is not None and self.iteration is None

    @property
    def is_step(self) -> bool:
        """Return whether this is executed, rather than a container of tasks."""
        return self.component.dag is None and not self.is_loop

    @property
    def seconds(self) -> float:
        """Return how long it has run in seconds, without idle time, 0 if it has not started."""
        if self.started_at is None:
            return 0.0
        return max((self.ended_at or self._now()) - self.started_at - self.idle_seconds, 0.0)

    def has_open_others(self) -> bool:
        """Return whether another task of the run that does not wait for this one has not ended."""
        line = [self]
        while line[-1].parent:
            line.append(line[-1].parent)

        @cache
        def waits(task: Task) -> bool:
            is_after = any(each in line or waits(each) for each in task.upstream)
            return is_after or (task.parent is not None and waits(task.parent))

        opened = [each for each in line[-1].walk() if not (each.children or each.state.is_final or each is self)]
        return not all(map(waits, opened))

    def walk(self) -> list["Task"]:
        """Return this task and all tasks below it, parents first."""
        return [self, *(task for child in self.children.values() for task in child.walk())]

    def begin(self) -> None:
        """Move to RUNNING; a start in an earlier process counts."""
        self.state = State.RUNNING
        self.begun = self.begun or (time.time(), time.monotonic())
        self.started_at = self.started_at or self.begun[0]

    def finish(self, state: State, *, error: str = "", note: str = "") -> None:
        """Move to a final state."""
        self.state, self.error, self.note, self.retry_at = state, error, note, None
        if self.started_at is not None:
            self.ended_at = self._now()

    def _now(self) -> float:
        """Return the present in seconds since the epoch; setting the clock back while this runs has no effect."""
        since, monotonic = self.begun or (0.0, time.monotonic())
        return max(time.time(), since + time.monotonic() - monotonic)
