"""A layered drawing of one dag: boxes in rows, each below its dependencies, and the lines between them.

The rows follow Sugiyama's method: layers, then an order with few crossings, then positions. A line that passes a row
gets a place in it, so that it never crosses a box; lines from the same box or to the same box share their places.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

ROW_GAP = 26.0
_GAP, _LINE_GAP = 16.0, 8.0
_ROW_WIDTH, _ASPECT = 860.0, 1.6
"""A row is full at this width, or when the drawing would be this many times as wide as it is high."""

_NUM_SWEEPS = 8
_MAX_LINES = 5_000

Size = tuple[float, float]
Point = tuple[float, float]


class TooManyLines(Exception):
    """A dag has more dependencies than a page can show."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Positions in pixels, from the top left corner."""

    places: dict[str, Point]
    """The top left corner of each box."""
    lines: list[list[Point]]
    """The corners of each line, from the box that is needed down to the one that needs it."""
    size: Size


_Item = tuple[str, str, int]
"""A box ("", name, row), or the place of lines ("from", source, row) or ("to", target, row) in a row that they pass."""

_ItemLists = list[list[_Item]]
"""The items of each row, or those that each line passes."""

_Neighbours = dict[_Item, tuple[dict[_Item, None], dict[_Item, None]]]
"""The items above and below each item, in their order."""


def arrange(sizes: Mapping[str, Size], needs: Mapping[str, set[str]]) -> Drawing:
    """Arrange the boxes of a dag.

    Args:
        sizes: Name -> width and height in pixels.
        needs: Name -> the names of its dependencies; an acyclic graph.

    Raises:
        TooManyLines: A drawing would be too large for a page.
    """
    edges = _reduce(needs)
    if sum(map(len, edges.values())) > _MAX_LINES:
        raise TooManyLines
    rows = _rows(sizes, edges)
    ways = _ways(rows, edges)
    layers, neighbours = _layers(rows, ways)
    _order(layers, neighbours)
    centres = _centres(layers, neighbours, {name: width for name, (width, _) in sizes.items()})
    return _to_drawing(sizes, layers, ways, centres, rows)


def _reduce(needs: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the edges without redundant ones, each name after its dependencies."""
    before: dict[str, set[str]] = {}
    edges = {}
    for name in TopologicalSorter(needs).static_order():
        indirect = set[str]().union(*(before[each] for each in needs[name]))
        before[name], edges[name] = needs[name] | indirect, needs[name] - indirect
    return edges


def _rows(sizes: Mapping[str, Size], edges: dict[str, set[str]]) -> dict[str, int]:
    """Return the row of each box: below its dependencies, and never in a full row."""
    rows: dict[str, int] = {}
    widths: list[float] = []
    area = sum((width + _GAP) * (height + ROW_GAP) for width, height in sizes.values())
    full = max(_ROW_WIDTH, math.sqrt(area * _ASPECT))
    for name, direct in edges.items():
        width, row = sizes[name][0] + _GAP, max((rows[each] + 1 for each in direct), default=0)
        while row < len(widths) and widths[row] + width > full:
            row += 1
        if row == len(widths):
            widths.append(0.0)
        widths[row] += width
        rows[name] = row
    return rows


def _ways(rows: dict[str, int], edges: dict[str, set[str]]) -> _ItemLists:
    """Return the items that each line connects, from its first box down to its last."""
    num_lines = Counter(source for direct in edges.values() for source in direct)
    ways = []
    for target, direct in edges.items():
        for source in sorted(direct):
            shared = ("from", source) if num_lines[source] >= len(direct) else ("to", target)
            passed = [(*shared, row) for row in range(rows[source] + 1, rows[target])]
            ways.append([("", source, rows[source]), *passed, ("", target, rows[target])])
    return ways


def _layers(rows: dict[str, int], ways: _ItemLists) -> tuple[_ItemLists, _Neighbours]:
    """Return the items of each row, and their neighbours."""
    neighbours: _Neighbours = {("", name, row): ({}, {}) for name, row in rows.items()}
    for way in ways:
        for upper, lower in itertools.pairwise(way):
            neighbours[upper][1][lower] = None
            neighbours.setdefault(lower, ({}, {}))[0][upper] = None
    layers: _ItemLists = [[] for _ in range(max(rows.values(), default=-1) + 1)]
    for item in neighbours:
        layers[item[2]].append(item)
    return layers, neighbours


def _order(layers: _ItemLists, neighbours: _Neighbours) -> None:
    """Sort each row by the mean place of the neighbours above, then below, and so on."""
    place = {item: float(index) for layer in layers for index, item in enumerate(layer)}
    for sweep in range(_NUM_SWEEPS):
        side = sweep % 2
        for layer in layers if side == 0 else reversed(layers):
            means = {item: _mean([place[each] for each in neighbours[item][side]], place[item]) for item in layer}
            layer.sort(key=means.__getitem__)
            place |= {item: float(index) for index, item in enumerate(layer)}


def _centres(layers: _ItemLists, neighbours: _Neighbours, widths: dict[str, float]) -> dict[_Item, float]:
    """Return the horizontal centre of each item: near its neighbours, in the order of the row, without overlap."""
    apart = [[_distance(left, right, widths) for left, right in itertools.pairwise(layer)] for layer in layers]
    packed = [list(itertools.accumulate(distances, initial=0.0)) for distances in apart]
    widest = max((row[-1] for row in packed), default=0.0)
    centres = {
        item: x + (widest - row[-1]) / 2
        for layer, row in zip(layers, packed, strict=True)
        for item, x in zip(layer, row, strict=True)
    }
    for sweep in range(_NUM_SWEEPS):
        side = sweep % 2
        rows = list(zip(layers, apart, packed, strict=True))
        for layer, distances, row in rows if side == 0 else reversed(rows):
            wanted = [_mean([centres[each] for each in neighbours[item][side]], centres[item]) for item in layer]
            room = widest - row[-1]
            # The limits of two neighbours keep the same distance: no row becomes wider than the widest.
            kept = [min(max(x, least), least + room) for x, least in zip(_spread(wanted, distances), row, strict=True)]
            centres |= dict(zip(layer, kept, strict=True))
    return centres


def _spread(wanted: list[float], distances: list[float]) -> list[float]:
    """Return positions near the wanted ones, each at its distance from the previous one."""
    rightwards, leftwards = wanted[:], wanted[:]
    for index, distance in enumerate(distances, 1):
        rightwards[index] = max(wanted[index], rightwards[index - 1] + distance)
    for index in reversed(range(len(distances))):
        leftwards[index] = min(wanted[index], leftwards[index + 1] - distances[index])
    # Both respect the distances, and so does their mean.
    return [(a + b) / 2 for a, b in zip(rightwards, leftwards, strict=True)]


def _distance(left: _Item, right: _Item, widths: dict[str, float]) -> float:
    """Return the least distance between the centres of two items."""
    half = sum(widths[item[1]] / 2 for item in (left, right) if not item[0])
    return half + (_LINE_GAP if left[0] and right[0] else _GAP)


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _to_drawing(
    sizes: Mapping[str, Size],
    layers: _ItemLists,
    ways: _ItemLists,
    centres: dict[_Item, float],
    rows: dict[str, int],
) -> Drawing:
    """Return the drawing with its left edge at zero."""
    halves = {item: 0.0 if item[0] else sizes[item[1]][0] / 2 for item in centres}
    left = min((centres[item] - halves[item] for item in centres), default=0.0)
    width = max((centres[item] + halves[item] for item in centres), default=0.0) - left
    tops, bottoms, top = [], [], 0.0
    for layer in layers:
        tops.append(top)
        bottoms.append(top + max((sizes[name][1] for kind, name, _ in layer if not kind), default=0.0))
        top = bottoms[-1] + ROW_GAP
    x = {item: centre - left for item, centre in centres.items()}
    lines = []
    for first, *passed, last in ways:
        start, row = x[first], first[2]
        line = [(start, tops[row] + sizes[first[1]][1]), (start, bottoms[row])]
        for item in passed:
            line += [(x[item], tops[item[2]]), (x[item], bottoms[item[2]])]
        lines.append([*line, (x[last], tops[last[2]])])
    places = {name: (x["", name, row] - sizes[name][0] / 2, tops[row]) for name, row in rows.items()}
    return Drawing(places=places, lines=lines, size=(width, bottoms[-1] if bottoms else 0.0))
