"""A key that stands twice hides a value from the check: it is refused, in JSON and in YAML."""

import pytest

from userinput.errors import UserError
from userinput.reading import parse


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[{"machineSpec": {"machineType": "bogus"}, "machineSpec": {"machineType": "n1-standard-4"}}]', "machineSpec"),
        ("- machine_spec: {machine_type: bogus}\n  machine_spec: {machine_type: n1-standard-4}\n", "machine_spec"),
        ("trainingInput:\n  scaleTier: BASIC\n  scaleTier: BASIC_GPU\n", "scaleTier"),
        ("{a: 1, a: 2}", "a"),
    ],
)
def test_a_key_that_stands_twice_is_refused(text: str, key: str) -> None:
    with pytest.raises(UserError, match=f"has the key '{key}' twice") as caught:
        parse(text.encode(), "file")
    assert "\n" not in str(caught.value)


def test_merge_keys_and_equal_keys_of_different_mappings_are_fine() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {z: 3}\nboth:\n  <<: *b\n  <<: *m\n  x: 4\nlist: [{x: 1}, {x: 2}]\n"
    assert parse(text.encode(), "file")["list"] == [{"x": 1}, {"x": 2}]


def test_merged_keys_may_be_given_again():
    """It lets a mapping override what it merges, also where another mapping merged it before it was built."""
    text = b"""
deep: {er: {z: &z {k: 1, l: 1}, a: &a {<<: *z, k: 2}}}
b: {<<: *a, k: 3}
c: {<<: [*a, *z], l: 4}
d: {<<: *z, <<: *a}
"""
    read = parse(text, "file")
    assert read["deep"]["er"]["a"] == {"k": 2, "l": 1}
    assert (read["b"], read["c"]) == ({"k": 3, "l": 1}, {"k": 2, "l": 4})


def test_keys_of_different_mappings_and_kinds_may_be_the_same():
    assert parse(b"- {a: 1, b: {a: 2}}\n- {a: 3}\n- {1: x, '1': y}\n", "file")[2] == {1: "x", "1": "y"}
    assert parse(b'{"a": {"a": "a", "b": [{"a": 1}, {"a": "{"}]}}', "file") == {
        "a": {"a": "a", "b": [{"a": 1}, {"a": "{"}]}
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"a": "\\"}{", "b": {"a": 1},\n\n"a": 2}', "'a' twice in one mapping, in lines 1 and 3"),
        (b'{"\\u0061": 1, "a": 2}', "'a' twice"),
        ('{"a":\n1, "a": 2}'.encode("utf-16"), "'a' twice in one mapping, in lines 1 and 2"),
        (b'{"a\\nb": 1, "a\\nb": 2}', r"'a\nb' twice"),
    ],
)
def test_json_names_the_key_and_its_lines(text, message):
    with pytest.raises(UserError) as error:
        parse(text, "job.json", json_only=True)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
