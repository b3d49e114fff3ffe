"""Values that users write as JSON, and the kinds that are allowed."""

from typing import Any

import pytest

from localvertex._base import kinds
from localvertex._base.kinds import Classes, Either, Number
from localvertex._base.userinput.errors import UserError

RATE = Number(lowest=0, highest=1)
CLASSES = Classes(
    keys={"A": "rate", "B": "count flag"},
    kinds={"count": range(1, 10), "flag keep": bool},
    other=RATE,
    common="keep",
    required="count",
    needs={"flag": "keep"},
)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1, RATE, 1.0),
        (3, range(1, 10), 3),
        ("b", ("a", "b"), "b"),
        (True, bool, True),
        ([0, 1], [RATE], [0.0, 1.0]),
        ({"x": 1}, {str: RATE}, {"x": 1.0}),
        ({"x": 1}, {"x": RATE, "y": bool}, {"x": 1.0}),
        ({"x": [None]}, dict, {"x": [None]}),
        ({"class_name": "A"}, CLASSES, {"class_name": "A", "config": {}}),
        ({"config": {"rate": 1}, "class_name": "A"}, CLASSES, {"class_name": "A", "config": {"rate": 1.0}}),
        (1, Either(kinds=(("a",), RATE)), 1.0),
    ],
)
def test_a_value_has_the_types_of_its_kind(value: Any, kind: Any, expected: Any) -> None:
    found = kinds.check("here", value, kind)
    assert found == expected
    assert repr(found) == repr(expected)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (True, RATE, "here is True; expected a number from 0 to 1"),
        (10**400, RATE, "expected a number from 0 to 1"),
        (float("nan"), RATE, "here is nan; expected a number from 0 to 1"),
        (True, range(1, 10), "here is True; expected a whole number from 1 to 9"),
        (3.0, range(1, 10), "expected a whole number from 1 to 9"),
        (0, bool, "here is 0; expected true or false"),
        ("c", ("a", "b"), "here is 'c'; expected one of: a, b"),
        ([0, "x"], [RATE], "here[1] is 'x'; expected a number"),
        ({"z": 1}, {"x": RATE}, "here has the unknown key 'z'; expected some of: x"),
        ([], {str: RATE}, "here is []; expected an object"),
        ({"class_name": "C"}, CLASSES, "here.class_name is 'C'; expected one of: A, B"),
        ({"class_name": "B"}, CLASSES, "here B has no count; give it"),
        ({"class_name": "B", "config": {"count": 1, "flag": True}}, CLASSES, "here B has flag without keep"),
        ([], Either(kinds=(("a",), RATE)), "here is []; expected one of: a or a number from 0 to 1"),
    ],
)
def test_a_wrong_value_is_refused_by_its_path(value: Any, kind: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        kinds.check("here", value, kind)
    assert message in str(caught.value)
