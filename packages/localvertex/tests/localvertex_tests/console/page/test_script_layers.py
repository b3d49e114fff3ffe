"""The scripts of the page form no circle: neither their files nor their folders import each other, at any depth."""

import re
from collections.abc import Iterator
from pathlib import Path

from localvertex.show.bundle import FOLDER
from vertex_testing.import_circles import Arrow, circles_of

IMPORT = re.compile(r"""(?:\bfrom|^import|\bimport\()\s*["'](\.[^"']+)["']""")


def arrows(folder: Path) -> Iterator[Arrow]:
    """Yield the imports of scripts: at the top, later when they are needed, and of types."""
    for path in sorted(folder.rglob("*.js")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in IMPORT.findall(line):
                source, target = (each.relative_to(folder).parts for each in (path, (path.parent / name).resolve()))
                if source != target:
                    yield Arrow(source=source, line=number, target=target)


def test_no_scripts_or_folders_import_each_other() -> None:
    found = list(arrows(FOLDER))
    assert len(found) > 100
    assert circles_of(found) == []


def test_a_circle_of_folders_is_found_however_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "html.js").write_text("")
    (tmp_path / "ui" / "late.js").write_text('const load = () => import("../runs/view.js");\n')
    (tmp_path / "runs" / "run.js").write_text('export {\n  html,\n} from "../ui/html.js";\n')
    (tmp_path / "runs" / "view.js").write_text('/** @typedef {import("./run.js").Run} Run */\n')
    assert circles_of([*arrows(tmp_path)]) == [
        "in the root: runs, ui\n  runs/run.js:3 imports ui/html.js\n  ui/late.js:1 imports runs/view.js"
    ]
