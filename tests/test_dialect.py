"""Style rules that ruff lacks: docstring entries, private imports, formatting and the width of the docs."""

import ast
import collections
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_imports import PACKAGES, files

MAX_COLUMNS = 120
ENTRY = re.compile(r"^ {4}(?:(\*{0,2}\w+)(?: \([^)]*\))?: )?(\S.*)$")
"""A line of a section: an entry `name: text`, or text alone as under Returns."""
SECTIONS = {"Args:", "Returns:", "Raises:", "Yields:"}
CODE = [*PACKAGES, "benchmarks", "tests"]


def python_files(repository: Path, package: str) -> list[Path]:
    found = files(repository, package)
    assert found
    return found


def pages(repository: Path) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=repository, capture_output=True, text=True)
    found = listed.stdout.split() if listed.returncode == 0 else []
    return found or [
        str(path.relative_to(repository)) for path in [*repository.glob("*.md"), *repository.glob("docs/**/*.md")]
    ]


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of every docstring, those below fields included."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                if isinstance(text := statement.value.value, str):
                    yield statement.lineno, text


def entries(text: str) -> Iterator[str]:
    """Yield the text of each entry of the sections of a docstring, continuation lines joined."""
    lines = ast.get_docstring(ast.parse(f"{text!r}")) or ""
    section, entry = False, ""
    for line in [*lines.splitlines(), "end"]:
        if line.strip() and not line.startswith(" "):
            if entry:
                yield entry
            section, entry = line in SECTIONS, ""
        elif section and (match := ENTRY.match(line)):
            if entry:
                yield entry
            entry = match[2]
        elif section and line.strip():
            entry += " " + line.strip()


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_end_with_a_full_stop_and_entries_begin_with_a_capital(repository: Path, package: str) -> None:
    wrong = []
    for path in python_files(repository, package):
        for line, text in docstrings(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path.relative_to(repository)}:{line}"
            if not text.strip().endswith((".", ":", "```", ">")):
                wrong.append(f"{where}: {text.strip()[-60:]}")
            wrong += [f"{where}: {entry}" for entry in entries(text) if not entry.endswith(".") or entry[0].islower()]
    assert wrong == []


@pytest.mark.parametrize("package", CODE)
def test_no_formatting_is_skipped(repository: Path, package: str) -> None:
    mark = "# fmt" + ": "
    wrong = [
        f"{path.relative_to(repository)}:{number}"
        for path in python_files(repository, package)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if mark in line
    ]
    assert wrong == []


@pytest.mark.parametrize("package", [*PACKAGES, "benchmarks"])
def test_no_private_name_is_imported_from_another_module(repository: Path, package: str) -> None:
    wrong = [
        f"{path.relative_to(repository)}:{node.lineno}: {alias.name}"
        for path in python_files(repository, package)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES
        for alias in node.names
        if alias.name.startswith("_")
    ]
    assert wrong == []


def test_lines_of_the_docs_end_at_120_columns(repository: Path) -> None:
    wrong = [
        f"{name}:{number}: {len(line)}"
        for name in pages(repository)
        for number, line in enumerate((repository / name).read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]
    assert wrong == []


def test_names_that_only_their_module_uses_begin_with_an_underscore(repository: Path) -> None:
    # A name that another file mentions, be it in a string or on a page, counts as used there.
    mentions: collections.Counter[str] = collections.Counter()
    # An environment has more files than the rest, so that its folder is not even listed.
    left_out = {".git", ".venv", ".venv-beam", ".venv-gpu", ".venv-torch", "build", "runs"}
    entries = [path for path in repository.iterdir() if path.name not in left_out]
    for path in [*entries, *(found for entry in entries if entry.is_dir() for found in entry.rglob("*.*"))]:
        if path.suffix in {".py", ".md", ".toml"} and "node_modules" not in path.parts:
            mentions.update(set(re.findall(r"\w+", path.read_text(encoding="utf-8"))))
    wrong = [
        f"{path.relative_to(repository)}: {name}"
        for package in PACKAGES
        for path in python_files(repository, package)
        for name in _public_names(ast.parse(path.read_text(encoding="utf-8")))
        if mentions[name] == 1
    ]
    assert wrong == []


def _public_names(module: ast.Module) -> list[str]:
    """Return the functions and constants of a module that begin without an underscore."""
    functions = [statement for statement in module.body if isinstance(statement, ast.FunctionDef)]
    names = [function.name for function in functions if not function.decorator_list]
    for statement in module.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets += [statement.target] if isinstance(statement, ast.AnnAssign) else []
        names += [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]
    return [name for name in names if not name.startswith("_")]
