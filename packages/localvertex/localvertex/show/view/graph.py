"""The graph of a pipeline: the places of its boxes and groups. Their states come from the record, in the page."""

import re
from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass, replace
from unicodedata import east_asian_width

from localvertex._base.compiled.spec import Dag, Importer, Pipeline, TaskSpec
from localvertex._base.json_object import JsonObject
from localvertex.runner.checks.refusals import circles
from localvertex.show.view import layout
from localvertex.store.task import State

_PADDING, HEADER, _HEIGHT = 10.0, 28.0, 44.0

_MIN_WIDTH, _MAX_UNITS = 148.0, 26
"""Width of a box, and most characters of its title."""

_TITLE_UNIT, _LABEL_UNIT = 7.8, 6.5
"""Width of a character in pixels, in bold type and in the small type of the other texts."""

_LABEL, _LABEL_IN_A_LOOP, _LABEL_OF_A_LINE = (
    len("NOT_TRIGGERED 9999.9 s"),
    len("10,000 of 10,000 NOT_TRIGGERED"),
    len("Not triggered"),
)
"""Most characters that a state takes."""

_ICON, _BUTTON, _ITEMS = 24.0, 20.0, 140.0
"""Room for the icon of the state, the button that closes a group, and the choice of an iteration of a loop."""

STEP, IMPORTER, GROUP, _CONDITION, _LOOP, EXIT_HANDLER = "step", "importer", "group", "if", "for each", "exit handler"
"""Kinds of boxes."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """One box of the drawing; a group contains others."""

    id: str = ""
    """Names of the tasks from the root, joined by slashes, without the numbers of iterations."""
    title: str = ""
    """The part of the name that fits."""
    name: str = ""
    kind: str = ""
    """One of the kinds; empty for the drawing itself."""
    note: str = ""
    """Further facts, independent of its state."""
    groups: tuple[str, ...] = ()
    """Ids of the groups around it that have nothing else inside: they are drawn as this box."""
    is_open: bool = False
    """Whether it is a group whose tasks are drawn."""
    x: float = 0.0
    y: float = 0.0
    """The top left corner, relative to the box around it."""
    width: float = 0.0
    height: float = _HEIGHT
    boxes: tuple["Box", ...] = ()
    lines: tuple[str, ...] = ()
    """The `d` of each path between the inner boxes, relative to this box."""


def shorten(title: str) -> str:
    """Return as much of a title as fits into a box."""
    room = _MAX_UNITS
    for index, character in enumerate(title):
        room -= _units(character)
        if room < 0:
            return f"{title[: index - 1]}…"
    return title


def _width_of(title: str, kind: str, note: str, *, is_open: bool, is_in_loop: bool, is_line: bool = False) -> float:
    """Return the width of a box for its title and any state; the texts of an open group are in one line.

    A task that the run did not take is drawn as a line.
    """
    most = _LABEL_OF_A_LINE if is_line else _LABEL_IN_A_LOOP if is_in_loop else _LABEL
    label = (most + _units(note) + 2 * bool(note)) * _LABEL_UNIT
    name = _units(title) * _TITLE_UNIT + (len(kind) + 4) * _LABEL_UNIT * (kind != STEP)
    around = _ICON + 2 * _PADDING + _BUTTON * (kind not in (STEP, IMPORTER))
    if is_open:
        return name + label + around + _ITEMS * (kind == _LOOP)
    return max(_MIN_WIDTH, name, label) + around


def _units(text: str) -> int:
    """Return how many characters wide a text is; East Asian ones are twice as wide."""
    return sum(2 if east_asian_width(each) in "WF" else 1 for each in text)


_MAX_BOXES = 600
"""With more boxes than this, inner groups are drawn closed."""

_EXIT_HANDLER = re.compile(r"exit-handler-\d+")
"""How kfp's compiler names the dag of dsl.ExitHandler."""

_Path = tuple[str, ...]
"""Names of tasks from the root, without the numbers of iterations."""


class NotDrawn(Exception):
    """Why there is no drawing, in one line."""


def not_taken(tasks: list[JsonObject]) -> Set[str]:
    """Return the ids of the boxes that a run did not take, from the entries of its record."""
    states = defaultdict[str, set[str]](set)
    for task in tasks:
        # A number is an iteration.
        states["/".join(each for each in task["path"].split("/") if not each.isdigit())].add(task["state"])
    return {box_id for box_id, found in states.items() if found == {State.NOT_TRIGGERED}}


def draw(pipeline: Pipeline, closed: Set[str] = frozenset(), lines: Set[str] = frozenset()) -> Box:
    """Return the drawing as a box around all others.

    A group with one task is drawn as that task, unless it is a loop.

    Args:
        pipeline: Pipeline to draw.
        closed: Ids of the groups to be drawn without their tasks.
        lines: Ids of the steps and closed groups that are drawn as a line: those that the run did not take.

    Raises:
        NotDrawn: It has no tasks, they wait for each other, or there are too many.
    """
    root = pipeline.root.dag
    if root is None or not root.tasks:
        raise NotDrawn("the pipeline has no tasks")
    if found := circles(pipeline):
        raise NotDrawn(found[0])
    depths = (50, 4, 3, 2, 1)
    depth = next((each for each in depths if _size(root, pipeline, closed, (), each) <= _MAX_BOXES), 0)
    try:
        if depth:
            return _Drawer(pipeline, closed, lines).group(Box(), root, (), depth)
    except layout.TooManyLines:
        pass
    raise NotDrawn("the pipeline has too many tasks or dependencies for a drawing")


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

    def __init__(self, pipeline: Pipeline, closed: Set[str], lines: Set[str]) -> None:
        self._pipeline, self._closed, self._lines = pipeline, closed, lines

    def group(self, box: Box, dag: Dag, path: _Path, depth: int, *, is_in_loop: bool = False) -> Box:
        """Return the box with the boxes of a dag inside."""
        inner = {name: self._box(task, (*path, name), depth, is_in_loop=is_in_loop) for name, task in dag.tasks.items()}
        needs = {name: {each for each in task.dependencies if each in inner} for name, task in dag.tasks.items()}
        drawing = layout.arrange({name: (each.width, each.height) for name, each in inner.items()}, needs)
        header, padding = (HEADER, _PADDING) if box.kind else (0.0, 0.0)
        width = max(drawing.size[0] + 2 * padding, box.width)
        left, top = (width - drawing.size[0]) / 2, padding + header
        return replace(
            box,
            is_open=True,
            width=width,
            height=drawing.size[1] + 2 * padding + header,
            boxes=tuple(replace(inner[name], x=left + x, y=top + y) for name, (x, y) in drawing.places.items()),
            lines=tuple(_curve([(left + x, top + y) for x, y in line]) for line in drawing.lines),
        )

    def _box(self, task: TaskSpec, path: _Path, depth: int, *, is_in_loop: bool, note: str = "") -> Box:
        """Return the box of a task; the note belongs to a surrounding group that contains nothing else."""
        name, kind, box_id = task.display_name or task.name, self._kind(task), "/".join(path)
        note = "also after a failure" if task.runs_after_failure else note
        dag = _dag(self._pipeline, task) if depth > 1 and box_id not in self._closed else None
        if dag is not None and len(dag.tasks) == 1 and kind != _LOOP:
            ((inner, only),) = dag.tasks.items()
            box = self._box(only, (*path, inner), depth - 1, is_in_loop=is_in_loop, note=note)
            return replace(box, name=f"{name}/{box.name}", groups=(*box.groups, box_id))
        title, is_line = shorten(name), box_id in self._lines and dag is None
        is_open = is_line or dag is not None
        box = Box(
            id=box_id,
            title=title,
            name=name,
            kind=kind,
            note=note,
            height=HEADER if is_line else _HEIGHT,
            width=_width_of(title, kind, note, is_open=is_open, is_in_loop=is_in_loop, is_line=is_line),
        )
        if dag is None:
            return box
        return self.group(box, dag, path, depth - 1, is_in_loop=is_in_loop or kind == _LOOP)

    def _kind(self, task: TaskSpec) -> str:
        """Return the kind of a task's box."""
        if task.iterator:
            return _LOOP
        if _dag(self._pipeline, task) is None:
            component = self._pipeline.components.get(task.component)
            executor = component and self._pipeline.executors.get(component.executor)
            return IMPORTER if isinstance(executor, Importer) else STEP
        if task.condition:
            return _CONDITION
        return EXIT_HANDLER if _EXIT_HANDLER.fullmatch(task.name) else GROUP


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
