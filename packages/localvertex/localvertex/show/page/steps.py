"""The steps of a run as a tree of rows that expand to show inputs and outputs."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from localvertex.show.jinja.templates import as_text
from localvertex.show.page.artifacts import Artifacts, View
from localvertex.store import record
from localvertex.store.steps import logs as step_logs
from localvertex.store.task import State

_MAX_ITERATIONS = 50
"""Of one loop: failed ones first, then in order."""

_MAX_ROWS = 500
"""Of the whole page."""

_MAX_LOGS = 100
"""Of one step: a tuning job has one per replica of each trial."""

_MAX_ITEM = 60
"""Characters of an item in the line of its row."""

_MAX_OPEN = 12
"""A group with more rows is folded, unless something in it failed."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One task: a step, or a group of further rows."""

    index: int
    """Index of the task in the record, and number of its id in the page."""
    title: str
    kind: str
    state: str
    task: dict[str, Any]
    """Its entry in the record."""
    item: dict[str, Any]
    """Distinction of this iteration of a loop: parameters by name, and URIs of artifacts."""
    left: float
    """Start on the timeline, in percent of the run."""
    width: float
    inputs: list[View]
    outputs: list[View]
    logs: dict[str, str]
    """Paths of its logs, relative to the page, by their names in the folder of the step."""
    rows: list["Row"]
    more: str
    """Note on omitted rows; empty if there are none."""
    is_open: bool

    @property
    def has_long_item(self) -> bool:
        """Return whether the item is too long for the row's line."""
        return any(len(as_text(value)) > _MAX_ITEM for value in self.item.values())


@dataclass(frozen=True, kw_only=True)
class Tree:
    """All rows of the page."""

    rows: list[Row]
    more: str
    shown: set[int]
    """Indexes of the tasks that have a row."""


def tree(content: dict[str, Any], artifacts: Artifacts) -> Tree:
    """Return the rows of a record."""
    builder = _Builder(content, artifacts)
    rows, more = builder.rows(None)
    return Tree(rows=rows, more=more, shown=builder.shown)


class _Builder:
    """One call of `tree`."""

    def __init__(self, content: dict[str, Any], artifacts: Artifacts) -> None:
        self.shown: set[int] = set()
        self._tasks: list[dict[str, Any]] = content["tasks"]
        self._artifacts = artifacts
        self._begin = record.seconds_of(content["start_time"]) or 0.0
        self._total = max(content["seconds"] + content["idle_seconds"], 0.001)
        self._paths = {task["path"]: index for index, task in enumerate(self._tasks)}
        self._children: defaultdict[int | None, list[int]] = defaultdict(list)
        for index, task in enumerate(self._tasks):
            self._children[self._parent(task)].append(index)

    def rows(self, parent: int | None) -> tuple[list[Row], str]:
        """Return the rows below a task, and what is left out."""
        every = sorted(self._children[parent], key=self._start)
        room = max(_MAX_ROWS - len(self.shown), 0)
        most = min(room, _MAX_ITERATIONS) if every and self._tasks[every[0]]["kind"] == "iteration" else room
        # Sorting keeps the order of equal rows.
        first = set(sorted(every, key=lambda index: self._tasks[index]["state"] != State.FAILED)[:most])
        chosen = [index for index in every if index in first]
        self.shown |= first
        left_out = Counter(self._tasks[index]["state"] for index in set(every) - first)
        states = ", ".join(f"{number:,} {state}" for state, number in sorted(left_out.items()))
        more = f"and {left_out.total():,} more in run.json: {states}" if left_out else ""
        return [self._row(index) for index in chosen], more

    def _parent(self, task: dict[str, Any]) -> int | None:
        """Return the index of a task's parent; None for a task of the root."""
        return self._paths.get(task["path"].rpartition("/")[0])

    def _start(self, index: int) -> tuple[str, int]:
        """Return the sort key of a task among its siblings: iterations by number, all others by start."""
        task = self._tasks[index]
        return ("" if task["kind"] == "iteration" else task["start_time"] or "not started", index)

    def _row(self, index: int) -> Row:
        task = self._tasks[index]
        rows, more = self.rows(index)
        start = record.seconds_of(task["start_time"])
        left = min(max((start - self._begin) / self._total * 100, 0.0), 99.0) if start else 0.0
        is_step = task["kind"] == "step"
        return Row(
            index=index,
            title=task["path"].rpartition("/")[2] if task["kind"] == "iteration" else task["display_name"],
            kind=task["kind"],
            state=task["state"],
            task=task,
            item=self._item(task) if task["kind"] == "iteration" else {},
            left=round(left, 2),
            width=round(min(task["seconds"] / self._total * 100, 100 - left), 2) if start else 0.0,
            inputs=self._artifacts.inputs(task["inputs"]["artifacts"]) if is_step else [],
            outputs=self._artifacts.outputs(task["outputs"]["artifacts"], task["title"]) if is_step else [],
            logs=self._logs(task) if is_step else {},
            rows=rows,
            more=more,
            is_open=bool(rows)
            and (task["state"] == State.FAILED or len(rows) <= _MAX_OPEN)
            # A good iteration needs no more than one line.
            and not (task["kind"] == "iteration" and task["state"] in (State.SUCCEEDED, State.SKIPPED)),
        )

    def _logs(self, task: dict[str, Any]) -> dict[str, str]:
        run_dir = self._artifacts.run_dir
        folder = run_dir / task["path"]
        found = step_logs.of_step(folder)[:_MAX_LOGS]
        return {str(log.relative_to(folder)): str(log.relative_to(run_dir)) for log in found}

    def _item(self, task: dict[str, Any]) -> dict[str, Any]:
        """Return the inputs that an iteration received and its loop did not: the item, whatever its name."""
        loop = self._parent(task)
        outer = self._tasks[loop]["inputs"] if loop is not None else {"parameters": {}, "artifacts": {}}
        inner = task["inputs"]
        item = {k: v for k, v in inner["parameters"].items() if k not in outer["parameters"]}
        for name, artifacts in inner["artifacts"].items():
            if artifacts != outer["artifacts"].get(name):
                item[name] = ", ".join(str(each["uri"]) for each in artifacts)
        return item
