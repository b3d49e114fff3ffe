"""localvertex.toml: what it refuses, each in one line."""

import json
import tomllib
from pathlib import Path

import pytest

from localvertex._base.userinput.errors import UserError
from localvertex.values.configuration import MAX_BYTES, Configuration, find, quoted, read

WHOLE = """
[step.train]
outputs = {model = "given/model", accuracy = 0.93}
[image."gcr.io/p/train:1"]
path = "src"
command = ["python", "-m", "training"]
[packages]
relax = ["TensorFlow", "scikit_learn"]
[buckets]
root = "buckets"
create = true
[buckets.files]
"gs://public/iris.csv" = "data/iris.csv"
"""


def test_paths_are_relative_to_the_folder_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "localvertex.toml"
    file.write_text(WHOLE)
    assert read(file) == Configuration(
        file=file,
        step={"train": {"outputs": {"model": "given/model", "accuracy": 0.93}}},
        image={"gcr.io/p/train:1": {"path": str(tmp_path / "src"), "command": ["python", "-m", "training"]}},
        packages={"relax": ["TensorFlow", "scikit_learn"]},
        buckets={
            "root": str(tmp_path / "buckets"),
            "create": True,
            "files": {"gs://public/iris.csv": str(tmp_path / "data/iris.csv")},
        },
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[steps.train]\noutputs = {}", "unknown table [steps]; did you mean step?; expected step, image, packages"),
        ("[step.train]\noutput = {}", "step.train has the unknown key 'output'; did you mean outputs?"),
        ("[step.train]\naddresses = 'path'", "step.train.addresses is 'path'; expected one of: gs, folder"),
        ("sandbox = 'x'", "sandbox is 'x'; expected one of: mask, none"),
        ("[step]\ntrain = 3", "step.train is 3; expected an object"),
        ("[packages]\nrelax = 'tensorflow'", "packages.relax is 'tensorflow'; expected a list"),
        ("[packages]\nrelax = [1]", "packages.relax[0] is 1; expected a text"),
        ("[buckets]\ncreate = 1", "buckets.create is 1; expected true or false"),
        ("[buckets.files]\n'iris.csv' = 'x'", "'iris.csv' is not an address; expected gs://BUCKET/OBJECT"),
        ("[step.train\n", "is not TOML"),
        ("x = " + "[" * 3000, "is not TOML"),
        ("\x00", "is not TOML"),
    ],
)
def test_other_content_is_refused_in_one_line(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "localvertex.toml"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        read(file)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "localvertex.toml"
    file.write_text("#" * (MAX_BYTES + 1))
    with pytest.raises(UserError, match="expected at most 1,048,576"):
        read(file)


def test_a_record_keeps_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text(WHOLE)
    found = read(file)
    assert Configuration.of_json(json.loads(json.dumps(found.as_json()))) == found
    assert Configuration.of_json(Configuration().as_json()) == Configuration()


def test_the_file_of_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find(None) == Configuration()
    (tmp_path / "localvertex.toml").write_text("# nothing yet\n")
    assert find(None).file == tmp_path / "localvertex.toml"
    with pytest.raises(UserError, match=r"other\.toml"):
        find(Path("other.toml"))


def test_a_file_may_be_empty_and_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "localvertex.toml"
    file.write_bytes(b"")
    assert read(file) == Configuration(file=file)
    file.write_bytes(b"\xef\xbb\xbf[packages]\r\nrelax = ['A_b']\r\n")
    assert read(file).packages == {"relax": ["A_b"]}


def test_every_name_of_a_pipeline_can_be_pasted() -> None:
    name = "".join(map(chr, range(0x180))) + "\u2028\ufeff\U0001f600\U0010ffff"
    assert tomllib.loads(f"[step.{quoted(name)}]\na = {quoted(name)}") == {"step": {name: {"a": name}}}
    assert quoted(name).isascii()
    assert quoted(name).isprintable()
