"""Files that are no compiled pipeline are called what they are not."""

from pathlib import Path

import pytest

from localvertex._base.compiled.load import load
from localvertex._base.userinput.errors import UserError

FILES = {
    "README.md": b"# Title\n\n- a: b\n---\n[x](y): *z\n",
    "pipeline.py": b"from kfp import dsl\n\n\ndef f(a: int) -> int:\n    return a\n",
    "page.png": b"\x89PNG\r\n\x1a\n\x00",
    "notes.txt": b"some text",
    "archive": b"\x1f\x8b\x08\x00",
}


@pytest.mark.parametrize("name", FILES)
def test_another_kind_of_file_is_not_a_compiled_pipeline(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    with pytest.raises(UserError, match="is not a compiled pipeline") as caught:
        load(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_the_readme_of_the_project_is_not_one(package: Path) -> None:
    with pytest.raises(UserError, match=r"README\.md is not a compiled pipeline; give the \.json or \.yaml file"):
        load(package / "README.md")


@pytest.mark.parametrize(("name", "text"), [("a.yaml", "is not YAML: "), ("a.json", "is not JSON: ")])
def test_a_broken_pipeline_file_shows_where_it_is_broken(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text('{"root": {"dag": \n "x": ]')
    with pytest.raises(UserError, match=text):
        load(tmp_path / name)
