"""exact_resume stands alone: it imports nothing of ours, has no circles, and nothing heavy before it is called."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import exact_resume
from vertex_testing.import_circles import circles

ROOT = Path(exact_resume.__file__).parent
MAY_IMPORT = {"exact_resume", "numpy", *sys.stdlib_module_names}
GOOGLE = {"google", "google_crc32c", "requests", "urllib3"}
"""Packages of the extra gs."""
MAX_ENTRIES = 25


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the name of each package that a file imports, and whether it does so in a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    nested = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "" if not node.level else "exact_resume"]
        yield from ((name.partition(".")[0], id(node) in nested) for name in names)


def test_only_numpy_is_imported_and_google_where_a_call_is_made() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted(ROOT.rglob("*.py"))
        for name, is_nested in imports(path)
        if name not in MAY_IMPORT and not (name in GOOGLE and is_nested)
    ]
    assert wrong == []


@pytest.mark.parametrize("module", ["exact_resume.checkpoints.async_writer", "exact_resume.events.log"])
def test_a_local_run_needs_no_package_of_google(module: str) -> None:
    # A package that is installed may have made the namespace `google` before the program starts.
    program = (
        f"import sys; before = set(sys.modules); import {module}; "
        f"print([name for name in set(sys.modules) - before if name.partition('.')[0] in {GOOGLE}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_no_folder_imports_itself_through_others() -> None:
    assert circles(ROOT.parent, "exact_resume") == []


def test_no_module_imports_the_face_of_the_package() -> None:
    """It names them all, so each would be in a circle with it."""
    modules = [path for path in ROOT.rglob("*.py") if path not in (ROOT / "__init__.py", ROOT / "__main__.py")]
    nodes = [(path, node) for path in modules for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    assert [p.name for p, node in nodes if isinstance(node, ast.ImportFrom) and node.module == "exact_resume"] == []


def test_no_folder_has_too_many_entries() -> None:
    folders = {path.parent for path in ROOT.rglob("*.py")}
    entries = {folder: [each for each in folder.iterdir() if not each.name.startswith("__")] for folder in folders}
    assert {folder: len(found) for folder, found in entries.items() if len(found) > MAX_ENTRIES} == {}
