"""Tests that the search for circles of imports finds each way to write an import, at every depth."""

from pathlib import Path

import pytest

from vertex_testing.import_circles import circles


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    "back",
    [
        "import p.low.a",
        "from p.low import a",
        "from p.low.a import name",
        "from ..low import a",
        "from ..low.a import name",
        "def f():\n    from p.low import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.low import a",
    ],
)
def test_every_way_to_write_an_import_counts(tmp_path: Path, back: str) -> None:
    root = written(tmp_path, {"p/__init__.py": "", "p/low/a.py": "from p.high import b", "p/high/b.py": back})
    (found,) = circles(root, "p")
    line = back.count("\n") + 1
    assert found.splitlines() == [
        "in p: high, low",
        f"  p/high/b.py:{line} imports p/low/a.py",
        "  p/low/a.py:1 imports p/high/b.py",
    ]


@pytest.mark.parametrize(
    ("files", "rooms"),
    [
        ({"p/q/a/x.py": "import p.q.b.y", "p/q/b/y.py": "import p.q.a.z", "p/q/a/z.py": ""}, "in p/q: a, b"),
        ({"p/a.py": "from p.b import x", "p/b/__init__.py": "from p import a"}, "in p: a.py, b"),
        ({"p/a.py": "import p.b", "p/b.py": "import p.c", "p/c.py": "from . import a"}, "in p: a.py, b.py, c.py"),
        ({"p/a.py": "import p", "p/__init__.py": "from .a import x"}, "in p: __init__.py, a.py"),
        ({"p/a.py": "import program", "program.py": "from p import a"}, "in the root: p, program.py"),
    ],
    ids=["below", "a file and a folder", "three files", "the package's own file", "between packages"],
)
def test_circles_are_found_at_every_depth(tmp_path: Path, files: dict[str, str], rooms: str) -> None:
    packages = sorted({name.partition("/")[0].removesuffix(".py") for name in files})
    assert [text.splitlines()[0] for text in circles(written(tmp_path, files), *packages)] == [rooms]


def test_a_layout_without_circles_has_none(tmp_path: Path) -> None:
    # `from p.low import name` is the module if there is one, so `low/__init__` is not a part of this.
    files = {
        "p/__init__.py": "",
        "p/low/__init__.py": "from p.low.deep import thing",
        "p/low/deep.py": "from p.low import other",
        "p/low/other.py": "import json",
        "p/high/a.py": "from p.low import name, other\nfrom . import b",
        "p/high/b.py": "",
    }
    assert circles(written(tmp_path, files), "p") == []


def test_a_package_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="contains no p"):
        circles(tmp_path, "p")
