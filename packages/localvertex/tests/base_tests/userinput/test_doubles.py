"""Numbers as doubles: which integers change, compared with protobuf's Struct, which the service uses."""

from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2

from localvertex._base.compiled import parameters
from localvertex._base.compiled.parameters import ParameterSpec, ParameterType, convert, restore_integers
from localvertex._base.userinput import doubles
from localvertex._base.userinput.errors import UserError

EXACT = 2**53


@pytest.mark.parametrize("number", [EXACT - 1, EXACT, EXACT + 1, EXACT + 3, -EXACT - 1, 2**60 + 1, 10**300])
def test_integers_become_what_protobuf_makes_of_them(number: int) -> None:
    for value in (number, [number], {"a": [number, "text", True, None]}):
        message = struct_pb2.Value()
        json_format.ParseDict(value, message)
        assert doubles.as_doubles(value) == json_format.MessageToDict(message)
    as_integer = convert(number, ParameterType.NUMBER_INTEGER)
    assert isinstance(as_integer, int)
    assert as_integer == int(float(number))


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(EXACT, ""), (EXACT + 2, ""), (EXACT + 1, "9007199254740993 becomes 9007199254740992"), (True, ""), (1.5, "")],
)
def test_a_warning_names_what_changes(value: Any, rounded: str) -> None:
    for each in (value, [1, value], {"a": {"b": value}}):
        text = doubles.rounding_warning("parameter 'n'", each)
        assert rounded in text
        assert bool(text) == bool(rounded)


@pytest.mark.parametrize("kind", [ParameterType.NUMBER_INTEGER, ParameterType.NUMBER_DOUBLE, ParameterType.LIST])
def test_a_number_beyond_all_doubles_is_refused_in_one_line(kind: ParameterType) -> None:
    value: Any = [10**400] if kind is ParameterType.LIST else 10**400
    with pytest.raises(ValueError, match="too large for a double"):
        convert(value, kind)
    with pytest.raises(UserError, match="parameter 'n' is"):
        parameters.convert_all({"n": ParameterSpec(type=kind)}, {"n": value})


@pytest.mark.parametrize("empty", [[], {}])
@pytest.mark.parametrize(("kind", "expected"), [(ParameterType.LIST, []), (ParameterType.STRUCT, {})])
def test_an_empty_list_and_an_empty_object_stand_for_each_other(
    empty: Any, kind: ParameterType, expected: object
) -> None:
    assert convert(empty, kind) == expected
    declared = {"n": ParameterSpec(type=kind)}
    assert parameters.convert_all(declared, {"n": empty}) == {"n": expected}
    assert parameters.read_given(declared, [f"n={empty}"]) == {"n": expected}
    with pytest.raises(UserError, match="expected"):
        parameters.convert_all(declared, {"n": {"a": 1} if kind is ParameterType.LIST else [1]})
    for other in (ParameterType.STRING, ParameterType.NUMBER_INTEGER, ParameterType.BOOLEAN):
        with pytest.raises(UserError, match="expected"):
            parameters.convert_all({"n": ParameterSpec(type=other)}, {"n": empty})


def test_a_negative_zero_keeps_its_sign() -> None:
    assert str(restore_integers({"a": [-0.0, 0.0, -1.0]})) == "{'a': [-0.0, 0, -1]}"
    assert str(convert(-0.0, ParameterType.NUMBER_INTEGER)) == "0"


def test_the_smallest_rounded_integer_is_the_same_in_a_request_and_in_a_file() -> None:
    for number in (2**53 + 1, -(2**53) - 1, 2**53 + 2):
        found, carried = doubles.as_doubles([number]), restore_integers([float(number)])
        assert [(type(each), each) for each in found] == [(type(each), each) for each in carried]
