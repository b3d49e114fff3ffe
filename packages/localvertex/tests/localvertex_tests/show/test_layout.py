"""The drawing of a dag: no boxes overlap, every line goes down and around the boxes, and nothing leaves the drawing."""

from itertools import combinations, pairwise

from hypothesis import given, settings, strategies as st

from localvertex.show.view.layout import ROW_GAP, Drawing, Point, Size, arrange

MARGIN = 0.001


@st.composite
def dags(draw: st.DrawFn) -> tuple[dict[str, Size], dict[str, set[str]]]:
    """Sizes and needs of up to 25 boxes; each needs only earlier ones."""
    names = [f"task-{number}" for number in range(draw(st.integers(0, 25)))]
    sides = st.tuples(st.integers(10, 700), st.integers(10, 300))
    sizes = {name: (float(width), float(height)) for name in names for width, height in [draw(sides)]}
    needs: dict[str, set[str]] = {}
    for name in names:
        needs[name] = draw(st.sets(st.sampled_from(list(needs)), max_size=4)) if needs else set()
    return sizes, needs


def crosses(start: Point, end: Point, place: Point, size: Size) -> bool:
    """Return whether a part of a line, within the rows that it spans, runs through a box."""
    is_beside = max(start[0], end[0]) <= place[0] + MARGIN or min(start[0], end[0]) >= place[0] + size[0] - MARGIN
    is_over = end[1] <= place[1] + MARGIN or start[1] >= place[1] + size[1] - MARGIN
    return not is_beside and not is_over


@settings(max_examples=60, deadline=None)
@given(dags())
def test_any_dag_is_drawn_without_overlap(dag: tuple[dict[str, Size], dict[str, set[str]]]) -> None:
    sizes, needs = dag
    drawing = arrange(sizes, needs)
    assert drawing.places.keys() == sizes.keys()
    for name, (x, y) in drawing.places.items():
        assert x >= -MARGIN
        assert y >= 0
        assert x + sizes[name][0] <= drawing.size[0] + MARGIN
        assert y + sizes[name][1] <= drawing.size[1] + MARGIN
    for one, other in combinations(sizes, 2):
        (x1, y1), (x2, y2) = drawing.places[one], drawing.places[other]
        is_apart_x = x1 + sizes[one][0] <= x2 + MARGIN or x2 + sizes[other][0] <= x1 + MARGIN
        assert is_apart_x or y1 + sizes[one][1] <= y2 or y2 + sizes[other][1] <= y1, (one, other)
    for line in drawing.lines:
        for start, end in pairwise(line):
            assert start[1] <= end[1]
            assert not [name for name in sizes if crosses(start, end, drawing.places[name], sizes[name])]
    for name, earlier in needs.items():
        for each in earlier:
            assert drawing.places[each][1] + sizes[each][1] < drawing.places[name][1]
    assert drawing == arrange(sizes, needs)


def ends(drawing: Drawing, sizes: dict[str, Size]) -> set[tuple[str, str]]:
    """Return the boxes at the two ends of each line."""
    bottoms = {(x + sizes[n][0] / 2, y + sizes[n][1]): n for n, (x, y) in drawing.places.items()}
    tops = {(x + sizes[n][0] / 2, y): n for n, (x, y) in drawing.places.items()}
    return {(bottoms[line[0]], tops[line[-1]]) for line in drawing.lines}


def test_only_what_does_not_follow_from_other_lines_is_drawn() -> None:
    sizes: dict[str, Size] = dict.fromkeys("abcd", (100.0, 40.0))
    drawing = arrange(sizes, {"a": set(), "b": {"a"}, "c": {"a", "b"}, "d": {"c", "a"}})
    assert ends(drawing, sizes) == {("a", "b"), ("b", "c"), ("c", "d")}
    assert drawing.size == (100.0, 4 * 40 + 3 * ROW_GAP)


def test_many_equal_steps_do_not_make_the_drawing_wide() -> None:
    sizes: dict[str, Size] = {"first": (150.0, 44.0), **{str(number): (150.0, 44.0) for number in range(60)}}
    drawing = arrange(sizes, {"first": set(), **{str(number): {"first"} for number in range(60)}})
    assert drawing.size[0] < 1400


def test_a_dag_without_tasks_is_empty() -> None:
    assert arrange({}, {}) == Drawing(places={}, lines=[], size=(0.0, 0.0))
