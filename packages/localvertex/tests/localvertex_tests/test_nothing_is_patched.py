"""Objects get what they need from their constructor: who puts them together sets no attribute on them afterwards."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import localvertex

PACKAGE = Path(localvertex.__file__).parent
COMPOSES = "commands"
"""The folder that puts the server together: this holds for all its functions, in others for constructors."""
PATCHED = """
class Service:
    def __init__(self, jobs):
        self.jobs, self.models = jobs, Models()
        self.models.on_delete = print
        jobs.find: object = None
        jobs.threads.when_ended, self.kept = print, 1
        self.held: list = []
        self.held += [jobs]
"""


def patches(tree: ast.AST, *, everywhere: bool) -> Iterator[tuple[int, str]]:
    """Yield line and text of each attribute that is set on something else than `self`."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and (everywhere or function.name == "__init__"):
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                        yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize("folder", ["api", "console", COMPOSES])
def test_nothing_is_patched_onto_an_object_after_it_was_made(folder: str) -> None:
    paths = sorted((PACKAGE / folder).rglob("*.py"))
    found = {
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in paths
        for _, text in patches(ast.parse(path.read_text(encoding="utf-8")), everywhere=folder == COMPOSES)
    }
    assert paths
    assert found == set()


def test_each_way_to_patch_is_found() -> None:
    assert [text for _, text in patches(ast.parse(PATCHED), everywhere=False)] == [
        "self.models.on_delete",
        "jobs.find",
        "jobs.threads.when_ended",
    ]
