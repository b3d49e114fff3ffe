"""Values of parameters, from the command line and from files."""

import pytest

from compiled.spec import ParameterSpec, ParameterType
from localvertex.values import parameters
from userinput.errors import UserError

DECLARED = {
    "text": ParameterSpec(type=ParameterType.STRING, default="x"),
    "count": ParameterSpec(type=ParameterType.NUMBER_INTEGER, default=3),
    "rate": ParameterSpec(type=ParameterType.NUMBER_DOUBLE),
    "flag": ParameterSpec(type=ParameterType.BOOLEAN, default=False),
    "names": ParameterSpec(type=ParameterType.LIST, default=[]),
    "options": ParameterSpec(type=ParameterType.STRUCT, is_optional=True),
}


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("text=a=b=c", "a=b=c"),
        ("text=", ""),
        ("text=3", "3"),
        ('text="quoted"', '"quoted"'),
        ("count=-7", -7),
        ("count=2.0", 2),
        ("rate=1e-3", 0.001),
        ("rate=1", 1.0),
        ("flag=true", True),
        ("flag=False", False),
        ('names=["a=b", 1.0]', ["a=b", 1]),
        ('options={"a": {"b": [1.0, 0.5]}}', {"a": {"b": [1, 0.5]}}),
    ],
)
def test_an_option_is_read_by_the_declared_type(option, expected):
    (value,) = parameters.from_options([option], DECLARED).values()
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("count", "expected NAME=VALUE"),
        ("count=three", "parameter 'count': expected NUMBER_INTEGER such as 3, found \"three\""),
        ("count=2.5", "parameter 'count': expected NUMBER_INTEGER, found 2.5"),
        ("count=true", "parameter 'count': expected NUMBER_INTEGER, found true"),
        ('count="3"', "parameter 'count': expected NUMBER_INTEGER"),
        ("rate=NaN", "parameter 'rate': expected NUMBER_DOUBLE such as 0.5"),
        ("rate=1e999", "parameter 'rate': expected NUMBER_DOUBLE"),
        ("flag=yes", "parameter 'flag': expected BOOLEAN such as true, found \"yes\""),
        ("flag=1", "parameter 'flag': expected BOOLEAN, found 1"),
        ("names=a,b", "parameter 'names': expected LIST such as"),
        ("names=3", "parameter 'names': expected LIST, found 3"),
        ("options=[", "parameter 'options': expected STRUCT such as"),
        ("cuont=1", "no parameter 'cuont'; did you mean 'count'? it has: count, flag, names, options, rate, text"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(option, message):
    with pytest.raises(UserError) as caught:
        parameters.from_options([option], DECLARED)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_give_json_or_yaml_values(tmp_path):
    (tmp_path / "v.json").write_text('{"count": 4.0, "names": ["a"], "options": null}')
    (tmp_path / "v.yaml").write_text("count: 4\nnames:\n- a\n")
    for name in ("v.json", "v.yaml"):
        assert parameters.from_file(tmp_path / name, DECLARED) == {"count": 4, "names": ["a"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count: [1]", "parameter 'count': expected NUMBER_INTEGER, found"),
        ("count: '4'", "parameter 'count': expected NUMBER_INTEGER, found"),
        ("text: 2026-01-01", "broken YAML: Object of type date"),
        ("- a", "expected an object of parameter names and values, found list"),
        ("a: 1", "no parameter 'a'"),
        ("count: 'open", "broken YAML"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, text, message):
    (tmp_path / "v.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        parameters.from_file(tmp_path / "v.yaml", DECLARED)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_missing_ones_are_named_and_optional_ones_stay_empty():
    required = {**DECLARED, "more": ParameterSpec(type=ParameterType.STRING)}
    with pytest.raises(UserError, match=r"rate \(NUMBER_DOUBLE\), more \(STRING\)"):
        parameters.complete({}, required)
    values = parameters.complete({"rate": 1}, DECLARED)
    assert values["options"] is None
    assert values["rate"] == 1.0
    assert isinstance(values["rate"], float)


def test_a_value_outside_of_the_declared_literals_is_refused():
    declared = {"mode": ParameterSpec(type=ParameterType.STRING, default="fast", literals=("fast", "slow"))}
    assert parameters.complete({"mode": "slow"}, declared) == {"mode": "slow"}
    with pytest.raises(UserError, match=r"expected one of \['fast', 'slow'\], found \"odd\""):
        parameters.complete({"mode": "odd"}, declared)
