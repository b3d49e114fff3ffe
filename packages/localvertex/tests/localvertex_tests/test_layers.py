"""The layers of localvertex: nothing imports a higher one."""

import ast
from pathlib import Path

import pytest

from vertex_testing.import_circles import Arrow, arrows, circles

LAYERS = (
    "_base",
    "machines",
    "errors",
    "values",
    "processes",
    "credentials",
    "containers",
    "store",
    "jobs",
    "executors",
    "runner",
    "show",
    "api",
    "console",
    "client",
    "runs",
    "testing",
    "init",
    "probe",
    "prove",
)
"""The folders and files of localvertex, from the ground up."""
TOP = ("__init__", "__main__", "commands")
"""What only users and each other import."""
ROOT = {"compile", "cloud", "pipelines", "components", "trainer", "exact_resume", "tests", "vertex_testing"}
"""What a repository that uses this package may have, above all that of this package itself."""


@pytest.fixture(scope="module")
def imports(package: Path) -> list[Arrow]:
    """The imports of the modules from each other, those in functions too."""
    return arrows(package, "localvertex")


def room(parts: tuple[str, ...]) -> str:
    """Return the folder or file of localvertex that contains a module."""
    return parts[1].removesuffix(".py")


def test_each_folder_and_file_is_a_layer_or_at_the_top(package: Path) -> None:
    rooms = {path.stem for path in (package / "localvertex").iterdir() if path.name != "__pycache__"}
    assert rooms == {*LAYERS, *TOP}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_no_higher_one(imports: list[Arrow], layer: str) -> None:
    lower = LAYERS[: LAYERS.index(layer) + 1]
    assert [str(each) for each in imports if room(each.source) == layer and room(each.target) not in lower] == []


def test_it_imports_nothing_of_a_repository_that_uses_it(package: Path) -> None:
    wrong = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in sorted((package / "localvertex").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        if module.partition(".")[0] in ROOT and not getattr(node, "level", 0)
    ]
    assert wrong == []


def test_there_is_no_circle_of_imports(package: Path) -> None:
    assert circles(package, "localvertex") == []
