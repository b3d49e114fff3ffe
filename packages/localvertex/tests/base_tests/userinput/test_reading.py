"""JSON and YAML are read strictly: what one reader would silently drop or unfold is refused, in both formats."""

import ast
import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_all, parse_python, read, read_all


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[{"machineSpec": {"machineType": "bogus"}, "machineSpec": {"machineType": "n1-standard-4"}}]', "machineSpec"),
        ("- machine_spec: {machine_type: bogus}\n  machine_spec: {machine_type: n1-standard-4}\n", "machine_spec"),
        ("trainingInput:\n  scaleTier: BASIC\n  scaleTier: BASIC_GPU\n", "scaleTier"),
        ("{a: 1, a: 2}", "a"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(text: str, key: str) -> None:
    with pytest.raises(UserError, match=f"has the key '{key}' twice") as caught:
        parse_all(text.encode(), "file")[0]
    assert "\n" not in str(caught.value)


def test_merge_keys_and_equal_keys_of_different_mappings_are_fine() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {z: 3}\nboth:\n  <<: *b\n  <<: *m\n  x: 4\nlist: [{x: 1}, {x: 2}]\n"
    assert parse_all(text.encode(), "file")[0]["list"] == [{"x": 1}, {"x": 2}]


def test_merged_keys_may_be_given_again() -> None:
    """It lets a mapping override what it merges, even where another mapping merged it before it was built."""
    text = b"""
deep: {er: {z: &z {k: 1, l: 1}, a: &a {<<: *z, k: 2}}}
b: {<<: *a, k: 3}
c: {<<: [*a, *z], l: 4}
d: {<<: *z, <<: *a}
"""
    read = parse_all(text, "file")[0]
    assert read["deep"]["er"]["a"] == {"k": 2, "l": 1}
    assert (read["b"], read["c"]) == ({"k": 3, "l": 1}, {"k": 2, "l": 4})


def test_keys_of_different_mappings_and_kinds_may_be_the_same() -> None:
    assert parse_all(b"- {a: 1, b: {a: 2}}\n- {a: 3}\n- {1: x, '1': y}\n", "file")[0][2] == {1: "x", "1": "y"}
    assert parse_all(b'{"a": {"a": "a", "b": [{"a": 1}, {"a": "{"}]}}', "file")[0] == {
        "a": {"a": "a", "b": [{"a": 1}, {"a": "{"}]}
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"a": "\\"}{", "b": {"a": 1},\n\n"a": 2}', "'a' twice in one mapping; keep one"),
        (b'{"\\u0061": 1, "a": 2}', "'a' twice"),
        ('{"a":\n1, "a": 2}'.encode("utf-16"), "'a' twice in one mapping; keep one"),
        (b'{"a\\nb": 1, "a\\nb": 2}', r"'a\nb' twice"),
    ],
)
def test_json_names_the_key(text: bytes, message: str) -> None:
    with pytest.raises(UserError) as error:
        parse_all(text, "job.json")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["file.json", "file.yaml", "file"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "has the key 'a' twice in one mapping; keep one of them"),
        ('{"a": 1e999}', "contains the number inf; expected a finite number"),
        ("[" * 101 + "]" * 101 + " ", "is nested too deeply, more than 100 levels"),
        ("[" * 100_000, "is nested too deeply"),
        (" ", "is empty"),
        ('{"a": "open}', "is not "),
    ],
)
def test_both_formats_are_held_to_the_same_rules(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as caught:
        read_all(tmp_path / name)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_only_yaml_has_dates_and_they_can_be_refused() -> None:
    assert parse_all(b"day: 2026-01-01", "file") == [{"day": date(2026, 1, 1)}]
    for text in (b"day: 2026-01-01", b"2026-01-01: day", b"day: !!binary aGVsbG8=", b"days: !!set {a}"):
        with pytest.raises(UserError, match="which is not a JSON value; write it in quotes"):
            parse_all(text, "file", only_json_values=True)


def test_all_documents_of_a_file_are_read() -> None:
    assert parse_all(b"a: 1\n---\nb: 2\n", "file") == [{"a": 1}, {"b": 2}]
    with pytest.raises(UserError, match="'b' twice"):
        parse_all(b"a: 1\n---\nb: 2\nb: 3\n", "file")


def test_a_pipe_without_a_writer_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match=r"^\S+pipe.yaml is empty; expected JSON or YAML$"):
        read(pipe)


@pytest.mark.parametrize("is_late", [False, True])
def test_what_a_shell_gives_for_a_command_is_read_to_its_end(is_late: bool) -> None:
    reader, writer = os.pipe()
    command = ["sh", "-c", f"{'sleep 0.3; ' * is_late}echo a: 1; {'sleep 0.3; ' * is_late}echo b: 2"]
    process = subprocess.Popen(command, stdout=writer)
    os.close(writer)
    if not is_late:
        process.wait()
    assert read(f"/dev/fd/{reader}") == {"a": 1, "b": 2}
    os.close(reader)
    process.wait()


def test_very_long_yaml_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_bytes(b"a: 1\n# " + b"x" * 6 * 2**20)
    with pytest.raises(UserError, match="is YAML of more than 5 MiB"):
        read(file)


class Cycle:
    """Runs code when it is collected, in the middle of what allocates memory."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        for _ in range(50):
            pass


def test_code_can_be_parsed_by_several_threads() -> None:
    """Without a lock, Python 3.11 raised SystemError in 22 of 160 calls."""
    source = Path(ast.__file__).read_text()

    def parse_again(_: int) -> int:
        for _ in range(10):
            for _ in range(20):
                Cycle()
            parsed = parse_python(source)
        return len(parsed.body)

    before, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(4) as threads:
            sizes = [*threads.map(parse_again, range(4))]
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*threshold)
    assert len({*sizes}) == 1
    assert sizes[0] > 10
