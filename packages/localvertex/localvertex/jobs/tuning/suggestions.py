"""The parameters of each trial: the points of a grid in order, or random points that depend only on its number.

A resumed job therefore gets the same trials, in whatever order they end.
"""

import itertools
import math
import random
from collections.abc import Iterator, Sequence

from localvertex.machines.studies.parameters import Parameter, Scale, Value, ValueKind
from localvertex.machines.studies.study import Algorithm, Study

SEED = 0
"""The seed of all random searches, so that a run can be repeated."""

Point = dict[str, Value]
"""The value of each parameter, by name."""


def suggestions(study: Study) -> Iterator[Point]:
    """Yield the parameters of trial 1, trial 2 and so on; a grid ends, a random search does not."""
    if study.algorithm is Algorithm.GRID_SEARCH:
        return _grid(study.parameters)
    return (_random_point(study.parameters, number) for number in itertools.count(1))


def argument(value: Value) -> str:
    """Return a value as the text of a command-line argument: 16 and not 16.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else str(value)


def _grid(parameters: Sequence[Parameter]) -> Iterator[Point]:
    """Yield all points; the last parameter changes fastest."""
    if not parameters:
        yield {}
        return
    first, *rest = parameters
    is_range = first.kind is ValueKind.INTEGER
    for value in range(int(first.minimum), int(first.maximum) + 1) if is_range else first.values:
        for others in _grid(rest):
            yield {first.name: value, **others}


def _random_point(parameters: Sequence[Parameter], number: int) -> Point:
    chosen = random.Random(f"{SEED}/{number}")  # noqa: S311
    return {each.name: _random_value(each, chosen) for each in parameters}


def _random_value(parameter: Parameter, chosen: random.Random) -> Value:
    if parameter.kind in (ValueKind.CATEGORICAL, ValueKind.DISCRETE):
        return chosen.choice(parameter.values)
    low, high = parameter.minimum, parameter.maximum
    if parameter.kind is ValueKind.DOUBLE:
        return min(max(_draw_scaled(low, high, parameter.scale, chosen), low), high)
    # Each integer represents the interval from itself to the next one.
    if not parameter.scale.is_logarithmic:
        return chosen.randint(int(low), int(high))
    return min(int(_draw_scaled(low, high + 1, parameter.scale, chosen)), int(high))


def _draw_scaled(low: float, high: float, scale: Scale, chosen: random.Random) -> float:
    """Return a random number between two others, uniform on the scale."""
    if not scale.is_logarithmic:
        return chosen.uniform(low, high)
    number = math.exp(chosen.uniform(math.log(low), math.log(high)))
    return low + high - number if scale is Scale.UNIT_REVERSE_LOG_SCALE else number
