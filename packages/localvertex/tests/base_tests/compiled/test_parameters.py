"""Values of parameters, from the command line and from files."""

from pathlib import Path

import pytest

from localvertex._base.compiled import parameters
from localvertex._base.compiled.parameters import ParameterSpec, ParameterType
from localvertex._base.userinput.errors import UserError

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
def test_an_option_is_read_by_the_declared_type(option: str, expected: object) -> None:
    (value,) = parameters.read_given(DECLARED, [option]).values()
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("count", "--parameter is 'count'; expected NAME=VALUE"),
        ("count=three", "parameter 'count' is 'three'; expected NUMBER_INTEGER, such as 3"),
        ("count=2.5", "parameter 'count' is 2.5; expected NUMBER_INTEGER"),
        ("count=true", "parameter 'count' is True; expected NUMBER_INTEGER"),
        ('count="3"', "parameter 'count' is '3'; expected NUMBER_INTEGER"),
        ("rate=NaN", "parameter 'rate' is 'NaN'; expected NUMBER_DOUBLE, such as 0.5"),
        ("rate=1e999", "parameter 'rate' is '1e999'; expected NUMBER_DOUBLE"),
        ("flag=yes", "parameter 'flag' is 'yes'; expected BOOLEAN, such as true"),
        ("flag=1", "parameter 'flag' is 1; expected BOOLEAN"),
        ("names=a,b", "parameter 'names' is 'a,b'; expected LIST, such as [\"a\", \"b\"]"),
        ("names=3", "parameter 'names' is 3; expected LIST"),
        ('names={"a": 1}', "parameter 'names' is {'a': 1}; expected LIST"),
        ("options=[", "parameter 'options' is '['; expected STRUCT"),
        ('options={"a": 1, "a": 2}', "expected STRUCT"),
        ("cuont=1", "no parameter 'cuont'; did you mean count?"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(option: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parameters.read_given(DECLARED, [option])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_give_json_or_yaml_values_and_options_override_them(tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text('{"count": 4.0, "names": ["a"], "options": null}')
    (tmp_path / "v.yaml").write_text("count: 4\nnames:\n- a\n")
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    for name in ("v.json", "v.yaml"):
        assert parameters.read_given(DECLARED, [], tmp_path / name) == {"count": 4, "names": ["a"]}
    assert parameters.read_given(DECLARED, ["count=5"], tmp_path / "v.yaml") == {"count": 5, "names": ["a"]}
    assert parameters.read_given(DECLARED, [], tmp_path / "empty.yaml") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count: [1]", "parameter 'count' is [1]; expected NUMBER_INTEGER, such as 3"),
        ("count: '4'", "parameter 'count' is '4'; expected NUMBER_INTEGER"),
        ("count: 4\ncount: 5", "has the key 'count' twice in one mapping, in lines 1 and 2"),
        ("rate: .inf", "contains the number inf"),
        ("text: 2026-01-01", "contains '2026-01-01', which is not a JSON value; write it in quotes"),
        ("- a", "has ['a']; expected an object of parameter names and values"),
        ("count: 1\n---\ncount: 2", "has 2 YAML documents; expected one"),
        ("a: 1", "no parameter 'a'"),
        ("count: 'open", "is not YAML"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "v.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        parameters.read_given(DECLARED, [], tmp_path / "v.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_missing_ones_are_named_and_optional_ones_stay_empty() -> None:
    required = {**DECLARED, "more": ParameterSpec(type=ParameterType.STRING)}
    with pytest.raises(UserError, match=r"no value for rate \(NUMBER_DOUBLE\), more \(STRING\); give each one"):
        parameters.complete(required, {})
    values = parameters.complete(DECLARED, {"rate": 1, "count": None})
    assert (values["options"], values["count"]) == (None, 3)
    assert values["rate"] == 1.0
    assert isinstance(values["rate"], float)


@pytest.mark.parametrize("value", ["odd", "fast "])
def test_a_value_outside_of_the_declared_literals_is_refused(value: str) -> None:
    declared = {"mode": ParameterSpec(type=ParameterType.STRING, default="fast", literals=("fast", "slow"))}
    assert parameters.complete(declared, {"mode": "slow"}) == {"mode": "slow"}
    with pytest.raises(UserError, match=f"parameter 'mode' is '{value}'; expected one of fast, slow"):
        parameters.complete(declared, {"mode": value})


def test_a_value_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(UserError, match="expected STRUCT"):
        parameters.convert_all(DECLARED, {"options": {"a": object()}})


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("text", "a\nb\n", "a\nb"),
        ("value.json", '{"a": [1, 0.5],\n "b": "\u00e4"}', '{"a": [1, 0.5], "b": "\u00e4"}'),
        ("value.yaml", "a: [1, 0.5]\nb: yes\n", '{"a": [1, 0.5], "b": true}'),
        ("@", "of a file named @", "of a file named @"),
    ],
)
def test_a_string_is_read_from_a_file(tmp_path: Path, name: str, content: str, expected: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert parameters.read_given(DECLARED, [f"text=@{tmp_path / name}"]) == {"text": expected}


def test_two_at_signs_are_one_at_the_beginning_of_a_text() -> None:
    for text, expected in (("@@a", "@a"), ("@@", "@"), ("@@@a", "@@a"), ("a@b", "a@b"), ("", "")):
        assert parameters.read_given(DECLARED, [f"text={text}"]) == {"text": expected}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none", None, "cannot be read: no such file"),
        ("binary", b"\xff\xfe\x00a", "is not text in UTF-8"),
        ("value.json", b"{", "is not JSON"),
        ("value.yaml", b"a: 1\n---\nb: 1\n", "has 2 YAML documents; expected one"),
        ("date.yaml", b"a: 2026-01-01\n", "which is not a JSON value"),
        ("empty", b"", "is empty"),
    ],
)
def test_a_file_that_cannot_be_a_value_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        parameters.read_given(DECLARED, [f"text=@{tmp_path / name}"])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_form_does_not_read_files() -> None:
    assert parameters.from_text("@/etc/hostname", ParameterType.STRING) == "@/etc/hostname"
