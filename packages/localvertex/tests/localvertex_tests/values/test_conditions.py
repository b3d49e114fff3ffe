"""Conditions and selectors in the Common Expression Language."""

from typing import Any

import pytest

from localvertex.values import conditions

VALUES = {"i": 3, "x": 2.0, "s": 'it\'s "q"', "b": False, "none": None, "names": ["a"], "digits": "7"}


def value(name: str) -> str:
    return f"inputs.parameter_values['{name}']"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"int({value('i')}) == 3", True),
        (f"{value('i')} == 3.0", True),
        (f"{value('x')} == 2", True),
        (f"{value('i')} > {value('x')}", True),
        (f"double({value('i')}) >= 3.5", False),
        (f"int({value('digits')}) > 6", True),
        (f"{value('s')} == 'it\\'s \"q\"'", True),
        (f"{value('b')} == false", True),
        (f"!({value('b')} == false) && int({value('i')}) > 5", False),
        (f"!({value('b')} == true) || false", True),
        (f"{value('none')} == null", True),
        (f"'a' in {value('names')}", True),
        (f"{value('digits')} == '7'", True),
    ],
)
def test_conditions_hold_as_on_the_service(expression: str, expected: Any) -> None:
    conditions.check_condition(expression, set(VALUES))
    assert conditions.holds(expression, VALUES) is expected


@pytest.mark.parametrize("expression", [f"int({value('s')}) == 1", f"{value('i')} > 'x'", value("i")])
def test_a_condition_without_an_answer_is_an_error_in_one_line(expression: str) -> None:
    with pytest.raises(conditions.ConditionError) as caught:
        conditions.holds(expression, VALUES)
    assert "\n" not in str(caught.value)


def test_selectors_take_a_part_of_a_value() -> None:
    assert conditions.select('parseJson(string_value)["a"]["b"]', {"a": {"b": [1, 2]}}) == [1, 2]
    assert conditions.select('parseJson(string_value)["a"]', '{"a": "text"}') == "text"
    with pytest.raises(conditions.ConditionError):
        conditions.select('parseJson(string_value)["z"]', {"a": 1})
    with pytest.raises(conditions.ConditionError, match="does not support"):
        conditions.check_selector("open(string_value)")
