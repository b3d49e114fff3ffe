"""Decoded JSON is compared with its shape; the message names the path of the first difference."""

import re
from typing import Any

import pytest

from localvertex._base.userinput.shape import NUMBER, OPTIONAL_NUMBER, Wrong, check

SHAPE = {
    "name!": re.compile("[a-z]+"),
    "state": frozenset({"on", "off"}),
    "count": range(3),
    "seconds": NUMBER,
    "loss": OPTIONAL_NUMBER,
    "marks": [(NUMBER, str)],
    "of?": {str: {"path!": str}},
}


@pytest.mark.parametrize(
    "value",
    [
        {"name": "a"},
        {"name": "a", "other": object()},
        {"name": "a", "state": "on", "count": 2, "seconds": 1, "loss": float("nan"), "marks": [[1, "x"]], "of": None},
    ],
)
def test_a_value_of_the_shape_is_accepted(value: Any) -> None:
    check(value, SHAPE)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "the record has the wrong type: list"),
        ({}, "name is missing"),
        ({"name": "A"}, "name: unknown value 'A'"),
        ({"name": None}, "name has the wrong type: NoneType"),
        ({"name": "a", "state": "x"}, "state: unknown value 'x'"),
        ({"name": "a", "count": 3}, "count: unknown value 3"),
        ({"name": "a", "count": True}, "count has the wrong type: bool"),
        ({"name": "a", "seconds": float("inf")}, "seconds: expected a number from -1e+15 to 1e+15, found inf"),
        ({"name": "a", "marks": [[1, "x"], [1]]}, "marks[1] has 1 items instead of 2"),
        ({"name": "a", "of": {"b": {"path": 1}}}, "of.b.path has the wrong type: int"),
    ],
)
def test_another_value_is_refused_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(Wrong) as caught:
        check(value, SHAPE)
    assert str(caught.value) == message
