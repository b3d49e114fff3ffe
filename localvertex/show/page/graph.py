"""The graph of a pipeline as it ran: boxes and groups with their states, for the SVG of the page."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import east_asian_width

from localvertex.show.page import layout
from localvertex.state.task import State
from vertex_gpu_training.compiled.spec import Dag, Pipeline, TaskSpec

_MAX_BOXES = 200
"""With more boxes than this, inner groups are drawn closed."""

_PADDING, _HEADER, _HEIGHT = 12.0, 28.0, 44.0
_MIN_WIDTH, _MAX_UNITS, _UNIT = 148.0, 26, 7.8
"""Width of a box; most characters of its title, and the width of one."""

_WORST_FIRST = (
    State.FAILED,
    State.RUNNING,
    State.CANCELLED,
    State.PENDING,
    State.SUCCEEDED,
    State.SKIPPED,
    State.NOT_TRIGGERED,
)

_Path = tuple[str, ...]
"""Names of tasks from the root, without the numbers of iterations."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """One box of the drawing; a group contains others."""

    title: str = ""
    name: str = ""
    """The whole title."""
    kind: str = ""
    """`step`, `group`, `if` or `for each`; empty for the drawing itself."""
    state: str = ""
    label: str = ""
    """State, number of iterations and duration as text."""
    target: str = ""
    """Id of the page's part about this task; empty if there is none."""
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = _HEIGHT
    boxes: tuple["Box", ...] = ()
    lines: tuple[str, ...] = ()
    """The `d` of each path between the inner boxes, relative to this box."""


def draw(pipeline: Pipeline, tasks: list[dict[str, Any]], shown: set[int]) -> Box | None:
    """Return the drawing as a box around all others; None if the graph is too large.

    Args:
        pipeline: What was run.
        tasks: The entries of the record.
        shown: Indexes of the tasks that the page shows.
    """
    root = pipeline.root.dag
    depth = next((depth for depth in (50, 4, 3, 2, 1) if root and _size(root, pipeline, depth) <= _MAX_BOXES), 0)
    if root is None or not root.tasks or not depth:
        return None
    return _Drawer(pipeline, tasks, shown).group(Box(), root, (), depth, State.PENDING)


def _size(dag: Dag, pipeline: Pipeline, depth: int) -> int:
    """Return the number of boxes down to a depth; counting stops when there are too many."""
    total = 0
    for task in dag.tasks.values():
        inner = pipeline.components[task.component].dag
        total += 1 + (_size(inner, pipeline, depth - 1) if inner and depth > 1 else 0)
        if total > _MAX_BOXES:
            break
    return total


class _Drawer:
    """One call of `draw`."""

    def __init__(self, pipeline: Pipeline, tasks: list[dict[str, Any]], shown: set[int]) -> None:
        self._pipeline = pipeline
        self._tasks: defaultdict[_Path, list[dict[str, Any]]] = defaultdict(list)
        self._targets: dict[_Path, str] = {}
        for index, (path, task) in enumerate(_paths(tasks)):
            if task["kind"] != "iteration":
                self._tasks[path].append(task)
                if index in shown:
                    self._targets.setdefault(path, f"task-{index}")

    def group(self, box: Box, dag: Dag, path: _Path, depth: int, state: str) -> Box:
        """Return the box with those of a dag inside."""
        inner = {name: self._box(task, (*path, name), depth, state) for name, task in dag.tasks.items()}
        needs = {name: {each for each in task.dependencies if each in inner} for name, task in dag.tasks.items()}
        drawing = layout.arrange({name: (each.width, each.height) for name, each in inner.items()}, needs)
        header = _HEADER if box.kind else 0.0
        width = max(drawing.size[0], _width(box.title, box.label, box.kind) if box.kind else 0.0)
        left = _PADDING + (width - drawing.size[0]) / 2
        top = _PADDING + header
        return replace(
            box,
            width=width + 2 * _PADDING,
            height=drawing.size[1] + 2 * _PADDING + header,
            boxes=tuple(replace(inner[name], x=left + x, y=top + y) for name, (x, y) in drawing.places.items()),
            lines=tuple(_curve([(left + x, top + y) for x, y in line]) for line in drawing.lines),
        )

    def _box(self, task: TaskSpec, path: _Path, depth: int, outer: str) -> Box:
        """Return the box of a task; if the run did not reach it, it has the state of its group."""
        found = self._tasks.get(path, [])
        states = Counter(State(each["state"]) for each in found)
        default = State.NOT_TRIGGERED if outer == State.NOT_TRIGGERED else State.PENDING
        state = next((each for each in _WORST_FIRST if states[each]), default)
        dag = self._pipeline.components[task.component].dag
        title = task.display_name or task.name
        kind = "for each" if task.iterator else "if" if dag and task.condition else "group" if dag else "step"
        label = _label(state, states, found)
        if task.runs_after_failure:
            label += ", also after a failure"
        box = Box(
            title=_short(title),
            name=title,
            kind=kind,
            state=state,
            label=label,
            target=self._targets.get(path, ""),
            width=_width(_short(title), label, "" if kind == "step" else kind),
        )
        return self.group(box, dag, path, depth - 1, state) if dag and depth > 1 else box


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


def _short(title: str) -> str:
    """Return as much of a title as fits into a box; East Asian characters are twice as wide."""
    room = _MAX_UNITS
    for index, character in enumerate(title):
        room -= 2 if east_asian_width(character) in "WF" else 1
        if room < 0:
            return f"{title[: index - 1]}…"
    return title


def _width(title: str, label: str, kind: str) -> float:
    """Return the width that the texts of a box need; those of a group are in one line."""
    units = [sum(2 if east_asian_width(each) in "WF" else 1 for each in text) for text in (title, label)]
    needed = sum(units) + len(kind) + 4 if kind else max(units)
    return max(_MIN_WIDTH, needed * _UNIT + 2 * _PADDING)


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
