"""The graph of every kind of pipeline: no two boxes intersect, no line runs through a box, and updates move nothing."""

import re
import time
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from localvertex_tests.constructs.construct import FOLDER

from localvertex._base.compiled.load import load
from localvertex._base.compiled.reader import read_pipeline
from localvertex._base.compiled.spec import Pipeline
from localvertex._base.userinput.errors import UserError
from localvertex.show.view import graph
from localvertex.show.view.graph import HEADER, IMPORTER, STEP, Box

MARGIN = 0.2
"""Coordinates have one decimal."""
ROUNDING = 1e-6

Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def boxes(box: Box, x: float = 0.0, y: float = 0.0) -> Iterator[tuple[Box, Rectangle]]:
    """Yield all boxes inside one with their places in the whole drawing."""
    for each in box.boxes:
        yield each, (x + each.x, y + each.y, x + each.x + each.width, y + each.y + each.height)
        yield from boxes(each, x + each.x, y + each.y)


def lines(box: Box, x: float = 0.0, y: float = 0.0) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield for each line the box around it, and the points that a browser draws it through."""
    for each in box.lines:
        yield box.id, [(x + px, y + py) for px, py in points(each)]
    for inner in box.boxes:
        yield from lines(inner, x + inner.x, y + inner.y)


def points(path: str) -> list[tuple[float, float]]:
    """Return points along the `d` of a path of M, V and C."""
    found: list[tuple[float, float]] = []
    for command, text in re.findall(r"([MVC])([^MVC]+)", path):
        numbers = [float(each) for each in text.split()]
        if command == "M":
            found.append((numbers[0], numbers[1]))
        elif command == "V":
            found.append((found[-1][0], numbers[0]))
        else:
            (x0, y0), (x1, y1, x2, y2, x3, y3) = found[-1], numbers
            for part in (0.1, 0.25, 0.5, 0.75, 0.9, 1.0):
                a, b, c, d = (1 - part) ** 3, 3 * (1 - part) ** 2 * part, 3 * (1 - part) * part**2, part**3
                found.append((a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3))
    return found


def is_inside(one: Rectangle, other: Rectangle) -> bool:
    """Return whether a rectangle is inside another one; sums of widths are rounded."""
    is_after = one[0] >= other[0] - ROUNDING and one[1] >= other[1] - ROUNDING
    return is_after and one[2] <= other[2] + ROUNDING and one[3] <= other[3] + ROUNDING


def overlap(one: Rectangle, other: Rectangle) -> bool:
    """Return whether two rectangles have a part in common."""
    across = one[0] < other[2] - MARGIN and other[0] < one[2] - MARGIN
    return across and one[1] < other[3] - MARGIN and other[1] < one[3] - MARGIN


def check(drawing: Box) -> None:
    """Fail if boxes intersect, leave their group, or have a line through them that ends elsewhere."""
    found = list(boxes(drawing))
    places = {box.id: place for box, place in found}
    assert len(places) == len(found)
    for (one, place), (other, other_place) in combinations(found, 2):
        if other.id.startswith(f"{one.id}/"):
            assert is_inside(other_place, (place[0], place[1] + HEADER, place[2], place[3])), (one.id, other.id)
        else:
            assert not overlap(place, other_place), (one.id, other.id)
    whole = (0.0, 0.0, drawing.width, drawing.height)
    assert all(is_inside(place, whole) for place in places.values())
    around = {each.id: {inner.id for inner in each.boxes} for each in [drawing, *(box for box, _ in found)]}
    # Lines to the same box share most of their way.
    parts = {(group, *each) for group, line in lines(drawing) for each in pairwise(line)}
    for group, (x1, y1), (x2, y2) in parts:
        part = (min(x1, x2), y1 + MARGIN, max(x1, x2), y2 - MARGIN)
        hit = [each for each in around[group] if y2 - y1 > 2 * MARGIN and overlap(part, places[each])]
        assert not hit, (group, hit)


@pytest.mark.parametrize("name", sorted(each.name for each in FOLDER.iterdir()))
def test_each_construct_is_drawn_without_overlap(name: str) -> None:
    try:
        pipeline = load(FOLDER / name).pipeline
    except UserError:
        return
    drawing = graph.draw(pipeline)
    check(drawing)
    groups = {box.id for box, _ in boxes(drawing) if box.kind not in (STEP, IMPORTER)}
    for each in groups:
        closed = graph.draw(pipeline, {each})
        check(closed)
        assert not [box for box, _ in boxes(closed) if box.id.startswith(f"{each}/")]


def spec(tasks: dict[str, Any], components: dict[str, Any]) -> Pipeline:
    """Return a pipeline with these tasks in its root."""
    step = {"comp-step": {"executorLabel": "exec-step"}}
    document = {
        "pipelineInfo": {"name": "drawn"},
        "schemaVersion": "2.1.0",
        "root": {"dag": {"tasks": tasks}},
        "components": step | components,
        "deploymentSpec": {"executors": {"exec-step": {"container": {"image": "python:3.11", "command": ["true"]}}}},
    }
    pipeline = read_pipeline(document)
    assert not pipeline.problems
    return pipeline


def task(name: str, needs: list[str], component: str = "comp-step", **fields: Any) -> dict[str, Any]:
    """Return one task of a compiled file."""
    needed = {"dependentTasks": needs} if needs else {}
    return {"taskInfo": {"name": name}, "componentRef": {"name": component}} | needed | fields


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """Groups in groups, each a dag in which a task needs only earlier ones; titles of any characters."""
    components: dict[str, Any] = {}

    def tasks(depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for number in range(draw(st.integers(1, 9 - 2 * depth))):
            needs = draw(st.lists(st.sampled_from(sorted(found)), max_size=4, unique=True)) if found else []
            kind = draw(st.sampled_from(["step", "step", "if", "loop", "group"])) if depth < 3 else "step"
            component, extra = "comp-step", dict[str, Any]()
            if kind != "step":
                component = f"comp-{len(components)}"
                components[component] = {}
                components[component]["dag"] = {"tasks": tasks(depth + 1)}
            if kind == "if":
                extra = {"triggerPolicy": {"condition": "1 == 1"}}
            if kind == "loop":
                extra = {"parameterIterator": {"itemInput": "item", "items": {"raw": "[1, 2]"}}}
            title = draw(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=40))
            name = f"{kind}-{number}"
            found[name] = task(title, needs, component, **extra)
        return found

    return spec(tasks(0), components)


@settings(max_examples=25, deadline=None)
@given(pipelines(), st.randoms(use_true_random=False))
def test_any_pipeline_is_drawn_without_overlap_whatever_is_closed(pipeline: Pipeline, random: Any) -> None:
    whole = graph.draw(pipeline)
    check(whole)
    groups = [box.id for box, _ in boxes(whole) if box.kind not in (STEP, IMPORTER)]
    some = graph.draw(pipeline, set(random.sample(groups, len(groups) // 2)))
    check(some)


def kinds_of(name: str) -> dict[str, tuple[str, str]]:
    """Return kind and note of each box of a construct."""
    drawing = graph.draw(load(FOLDER / name).pipeline)
    return {box.id: (box.kind, box.note) for box, _ in boxes(drawing)}


def test_boxes_name_their_kind() -> None:
    assert [note for _, note in kinds_of("exit_handler.json").values()].count("also after a failure") == 1
    assert {kind for kind, _ in kinds_of("condition_in_a_loop.json").values()} == {"for each", "step"}
    assert "importer" in {kind for kind, _ in kinds_of("importer_alone.json").values()}
    tasks = {
        "exit-handler-1": task("all", [], "comp-two"),
        "if": task("if", [], "comp-two"),
        "g": task("g", [], "comp-two"),
    }
    tasks["if"]["triggerPolicy"] = {"condition": "1 == 1"}
    two = {"comp-two": {"dag": {"tasks": {"a": task("a", []), "b": task("b", [])}}}}
    assert {each.kind for each in graph.draw(spec(tasks, two)).boxes} == {"exit handler", "if", "group"}


def test_a_group_with_one_child_is_one_box_and_a_branch_that_was_not_taken_is_a_line() -> None:
    alone = {"comp-outer": {"dag": {"tasks": {"inner": task("is-new", [], "comp-inner")}}}}
    alone["comp-outer"]["dag"]["tasks"]["inner"]["triggerPolicy"] = {"condition": "1 == 1"}
    alone["comp-inner"] = {"dag": {"tasks": {"train": task("train", [])}}}
    pipeline = spec({"outer": task("outer", [], "comp-outer")}, alone)
    (box,) = graph.draw(pipeline).boxes
    assert (box.id, box.title, box.name, box.kind) == ("outer/inner/train", "train", "outer/is-new/train", "step")
    assert (box.groups, box.note) == (("outer/inner", "outer"), "")
    entries = [
        {"path": "outer", "kind": "dag", "state": "SUCCEEDED"},
        {"path": "outer/inner", "kind": "dag", "state": "NOT_TRIGGERED"},
        {"path": "each", "kind": "loop", "state": "SUCCEEDED"},
        {"path": "each/0", "kind": "iteration", "state": "SUCCEEDED"},
        {"path": "each/0/if", "kind": "dag", "state": "NOT_TRIGGERED"},
        {"path": "each/1", "kind": "iteration", "state": "SUCCEEDED"},
        {"path": "each/1/if", "kind": "dag", "state": "SUCCEEDED"},
    ]
    # One iteration took the branch of the loop.
    assert graph.not_taken(entries) == {"outer/inner"}
    (line,) = graph.draw(pipeline, {"outer/inner"}, {"outer/inner"}).boxes
    assert (line.id, line.height, line.boxes) == ("outer/inner", HEADER, ())


@pytest.mark.parametrize("shape", ["chain", "fan", "layers"])
def test_300_steps_are_drawn_at_once_and_without_overlap(shape: str) -> None:
    shapes: dict[str, Callable[[int], list[str]]] = {
        "chain": lambda n: [f"t{n - 1}"] if n else [],
        "fan": lambda n: [] if n == 0 else ["t0"] if n < 299 else [f"t{each}" for each in range(1, 299)],
        "layers": lambda n: [f"t{each}" for each in range((n // 12 - 1) * 12, n // 12 * 12, 5)] if n >= 12 else [],
    }
    pipeline = spec({f"t{n}": task(f"t{n}", shapes[shape](n)) for n in range(300)}, {})
    started = time.process_time()
    drawing = graph.draw(pipeline)
    print(f"{shape}: {1000 * (time.process_time() - started):.0f} ms")
    assert len(drawing.boxes) == 300
    check(drawing)


def test_a_graph_with_more_lines_than_a_page_can_show_is_not_drawn() -> None:
    def all_need_all(num: int) -> Pipeline:
        first = [f"a{n}" for n in range(num)]
        steps = {name: task(name, []) for name in first} | {f"b{n}": task(f"b{n}", first) for n in range(num)}
        return spec(steps, {})

    drawn = graph.draw(all_need_all(30))
    assert len(drawn.lines) == 900
    with pytest.raises(graph.NotDrawn, match="too many tasks or dependencies"):
        graph.draw(all_need_all(71))
