"""A key that stands twice hides a value from the check: it is refused, in JSON and in YAML."""

import pytest

from accelerators.reading import UnreadableFile, parse


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
    with pytest.raises(UnreadableFile, match=f"has the key '{key}' twice") as caught:
        parse(text.encode(), "file")
    assert "\n" not in str(caught.value)


def test_merge_keys_and_equal_keys_of_different_mappings_are_fine() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {z: 3}\nboth:\n  <<: *b\n  <<: *m\n  x: 4\nlist: [{x: 1}, {x: 2}]\n"
    assert parse(text.encode(), "file")["list"] == [{"x": 1}, {"x": 2}]
