"""The graph of a pipeline, as it is or as it ran: boxes and groups with their states, for run.html and the console."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Set
from dataclasses import replace
from typing import Any

from localvertex.show.page import box as kinds, layout
from localvertex.show.page.box import HEADER, PADDING, Box
from localvertex.store.task import State
from localvertex_base.compiled.spec import Dag, Importer, Pipeline, TaskSpec

_MAX_BOXES = 600
"""With more boxes than this, inner groups are drawn closed."""

_WORST_FIRST = (
    State.FAILED,
    State.RUNNING,
    State.CANCELLED,
    State.PENDING,
    State.SUCCEEDED,
    State.SKIPPED,
    State.NOT_TRIGGERED,
)

_EXIT_HANDLER = re.compile(r"exit-handler-\d+")
"""How kfp's compiler names the dag of dsl.ExitHandler."""

_Path = tuple[str, ...]
"""Names of tasks from the root, without the numbers of iterations."""


def draw(
    pipeline: Pipeline,
    tasks: list[dict[str, Any]] | None,
    *,
    shown: Set[int] = frozenset(),
    closed: Set[str] = frozenset(),
) -> Box | None:
    """Return the drawing as a box around all others; None if the graph is too large.

    Nothing but the pipeline and `closed` decides the positions, so the boxes of a run stay where they are.

    Args:
        pipeline: Pipeline to draw; it has no circles.
        tasks: The entries of the record; None for a pipeline that has not run, whose boxes have no states.
        shown: Indexes of the tasks that the page shows.
        closed: Ids of the groups to be drawn without their tasks.
    """
    root = pipeline.root.dag
    if root is None or not root.tasks:
        return None
    depths = (50, 4, 3, 2, 1)
    depth = next((each for each in depths if _size(root, pipeline, closed, (), each) <= _MAX_BOXES), 0)
    if not depth:
        return None
    state = "" if tasks is None else str(State.PENDING)
    try:
        return _Drawer(pipeline, tasks or [], shown, closed).group(Box(state=state), root, (), depth)
    except layout.TooManyLines:
        return None


def _size(dag: Dag, pipeline: Pipeline, closed: Set[str], path: _Path, depth: int) -> int:
    """Return the number of boxes down to a depth; counting stops when there are too many."""
    total = 0
    for name, task in dag.tasks.items():
        inner, below = _dag(pipeline, task), (*path, name)
        is_open = inner is not None and depth > 1 and "/".join(below) not in closed
        total += 1 + (_size(inner, pipeline, closed, below, depth - 1) if inner and is_open else 0)
        if total > _MAX_BOXES:
            break
    return total


def _dag(pipeline: Pipeline, task: TaskSpec) -> Dag | None:
    """Return the dag of a group, None for a step; a file that cannot run may lack the component of a task."""
    component = pipeline.components.get(task.component)
    return component.dag if component else None


class _Drawer:
    """One call of `draw`."""

    def __init__(self, pipeline: Pipeline, tasks: list[dict[str, Any]], shown: Set[int], closed: Set[str]) -> None:
        self._pipeline, self._closed = pipeline, closed
        self._tasks: defaultdict[_Path, list[dict[str, Any]]] = defaultdict(list)
        self._targets: dict[_Path, str] = {}
        for index, (path, task) in enumerate(_paths(tasks)):
            if task["kind"] != "iteration":
                self._tasks[path].append(task)
                if index in shown:
                    self._targets.setdefault(path, f"task-{index}")

    def group(self, box: Box, dag: Dag, path: _Path, depth: int, *, is_in_loop: bool = False) -> Box:
        """Return the box with the boxes of a dag inside."""
        inner = {name: self._box(task, (*path, name), depth, box.state, is_in_loop) for name, task in dag.tasks.items()}
        needs = {name: {each for each in task.dependencies if each in inner} for name, task in dag.tasks.items()}
        drawing = layout.arrange({name: (each.width, each.height) for name, each in inner.items()}, needs)
        header = HEADER if box.kind else 0.0
        width = max(drawing.size[0] + 2 * PADDING, box.width)
        left, top = (width - drawing.size[0]) / 2, PADDING + header
        return replace(
            box,
            is_open=True,
            width=width,
            height=drawing.size[1] + 2 * PADDING + header,
            boxes=tuple(replace(inner[name], x=left + x, y=top + y) for name, (x, y) in drawing.places.items()),
            lines=tuple(_curve([(left + x, top + y) for x, y in line]) for line in drawing.lines),
        )

    def _box(self, task: TaskSpec, path: _Path, depth: int, outer: str, is_in_loop: bool) -> Box:
        """Return the box of a task."""
        name, kind = task.display_name or task.name, self._kind(task)
        title, note = kinds.shorten(name), "also after a failure" if task.runs_after_failure else ""
        state, label = self._state(path, outer)
        box_id = "/".join(path)
        dag = _dag(self._pipeline, task) if depth > 1 and box_id not in self._closed else None
        box = Box(
            id=box_id,
            title=title,
            name=name,
            kind=kind,
            state=state,
            label=label,
            note=note,
            target=self._targets.get(path, ""),
            width=kinds.width_of(title, kind, note, is_open=dag is not None, is_in_loop=is_in_loop),
        )
        if dag is None:
            return box
        return self.group(box, dag, path, depth - 1, is_in_loop=is_in_loop or kind == kinds.LOOP)

    def _kind(self, task: TaskSpec) -> str:
        """Return the kind of a task's box."""
        if task.iterator:
            return kinds.LOOP
        if _dag(self._pipeline, task) is None:
            component = self._pipeline.components.get(task.component)
            executor = component and self._pipeline.executors.get(component.executor)
            return kinds.IMPORTER if isinstance(executor, Importer) else kinds.STEP
        if task.condition:
            return kinds.CONDITION
        return kinds.EXIT_HANDLER if _EXIT_HANDLER.fullmatch(task.name) else kinds.GROUP

    def _state(self, path: _Path, outer: str) -> tuple[str, str]:
        """Return the state of a task and its label; a task that the run did not reach has the state of its group."""
        if not outer:
            return "", ""
        found = self._tasks.get(path, [])
        states = Counter(State(each["state"]) for each in found)
        default = State.NOT_TRIGGERED if outer == State.NOT_TRIGGERED else State.PENDING
        state = next((each for each in _WORST_FIRST if states[each]), default)
        return str(state), _label(state, states, found)


def _paths(tasks: list[dict[str, Any]]) -> Iterator[tuple[_Path, dict[str, Any]]]:
    """Yield each task of a record, parents before children, with its path in the pipeline."""
    known: dict[str, _Path] = {"": ()}
    for task in tasks:
        parent, _, name = str(task["path"]).rpartition("/")
        path = known.get(parent, ())
        known[task["path"]] = path if task["kind"] == "iteration" else (*path, name)
        yield known[task["path"]], task


def _label(state: State, states: Counter[State], tasks: list[dict[str, Any]]) -> str:
    """Describe the state of a task, or of all its iterations in a loop."""
    if len(tasks) > 1:
        return f"{states[state]:,} of {len(tasks):,} {state}"
    return f"{state} {tasks[0]['seconds']:.1f} s" if tasks and tasks[0]["start_time"] else str(state)


def _curve(line: list[layout.Point]) -> str:
    """Return the path of a line: straight inside a row, curved between two."""
    (x, y), *rest = line
    text, is_straight = f"M{x:.1f} {y:.1f}", True
    for next_x, next_y in rest:
        if is_straight:
            text += f"V{next_y:.1f}"
        else:
            middle = (y + next_y) / 2
            text += f"C{x:.1f} {middle:.1f} {next_x:.1f} {middle:.1f} {next_x:.1f} {next_y:.1f}"
        x, y, is_straight = next_x, next_y, not is_straight
    return text
