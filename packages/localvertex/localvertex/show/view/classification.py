"""ClassificationMetrics: the confusion matrix as a table, and the ROC curve as points."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

_MAX_CLASSES = 100
_MAX_POINTS = 2000
_NUM_SHADES = 5


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number of the matrix, and how dark it is drawn."""

    value: int | float
    shade: int
    """From 0, none of the row, to 4, all of the row."""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A confusion matrix: a row per true class, a column per predicted one."""

    names: list[str]
    rows: list[list[Cell]]


@dataclass(frozen=True, kw_only=True)
class Roc:
    """A receiver operating characteristic."""

    points: str
    """For an SVG polyline: the false positive rate to the right, the recall upwards, in a square of 200 pixels."""
    num_points: int
    area: float
    """Area under the curve, 0 to 1."""


def matrix(value: Any) -> Matrix | None:
    """Read `confusionMatrix` of the metadata; None if it is missing, too large or malformed."""
    try:
        names = [str(each["displayName"]) for each in value["annotationSpecs"]]
        rows = [[_number(each) for each in row["row"]] for row in value["rows"]]
    except (KeyError, TypeError, ValueError):
        return None
    if not 0 < len(names) <= _MAX_CLASSES or [len(row) for row in rows] != [len(names)] * len(names):
        return None
    return Matrix(names=names, rows=[[Cell(value=each, shade=_shade(each, sum(row))) for each in row] for row in rows])


def roc(value: Any) -> Roc | None:
    """Read `confidenceMetrics` of the metadata; None if it is missing, too large or malformed."""
    try:
        points = [(_number(each["falsePositiveRate"]), _number(each["recall"])) for each in value]
    except (KeyError, TypeError, ValueError):
        return None
    if not 1 < len(points) <= _MAX_POINTS or not all(0 <= number <= 1 for point in points for number in point):
        return None
    points.sort()
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))
    text = " ".join(f"{200 * x:.1f},{200 - 200 * y:.1f}" for x, y in points)
    return Roc(points=text, num_points=len(points), area=area)


def _number(value: Any) -> int | float:
    """Return a finite number; an integral one as an integer, since records keep numbers as doubles.

    Raises:
        ValueError: The value is not one.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return int(value) if float(value).is_integer() else value


def _shade(value: float, total: float) -> int:
    """Return the shade of a number; only zero has none."""
    if value <= 0 or total <= 0:
        return 0
    return max(1, min(_NUM_SHADES - 1, round(value / total * (_NUM_SHADES - 1))))
