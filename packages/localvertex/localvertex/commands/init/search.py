"""Find compiled pipelines and pipeline functions in a folder that may contain anything.

Only regular files below the folder are opened, links are not followed, and Python files are read as syntax trees, never
imported or run. The search ends after `_MAX_FILES` files or `_MAX_SECONDS`.
"""

import ast
import os
import re
import shlex
import stat
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex.commands.init import verdicts
from localvertex.commands.init.verdicts import Row
from localvertex.store import record
from localvertex_base.userinput import reading, regular_files

_MAX_SECONDS = 45.0
_MAX_FILES = 200_000
_MAX_DEPTH = 100
_MAX_SOURCE_BYTES = 500_000
_SKIPPED = re.compile(r"\..*|node_modules|site-packages|__pycache__")
_MARKS = {"pyvenv.cfg", "conda-meta", record.PRIVATE}
"""What is in virtual environments and in localvertex's work folders, which are not searched."""
_COMPILED = re.compile(rb"pipelineSpec|pipeline_spec|deploymentSpec|deployment_spec")
_KFP = re.compile(rb"^\s*(?:from|import)\s+kfp\b", re.MULTILINE)
_PIPELINE = re.compile(r"(?:\w+\.)*pipeline(?:\(.*\))?", re.DOTALL)
_NAME = re.compile(r"(?:\bname=|\.?pipeline\()'([^']*)'")


@dataclass(frozen=True, kw_only=True)
class Repository:
    """What a folder contains; all paths are relative to it."""

    rows: list[Row]
    test_folders: list[Path]
    """Folders with tests for pytest."""
    notes: list[str]
    """What was not searched, and why."""


def search(root: Path) -> Repository:
    """Search a folder; what cannot be read is noted."""
    rows, test_folders, notes, deadline = list[Row](), list[Path](), list[str](), time.monotonic() + _MAX_SECONDS
    for number, path in enumerate(_files(root, notes)):
        if number == _MAX_FILES or time.monotonic() > deadline:
            notes.append(f"stopped after {number:,} files; run init in a folder further down")
            break
        is_source = path.suffix == ".py"
        if is_source and re.fullmatch(r"test_.*|.*_test\.py", path.name):
            test_folders.append(path.parent)
        if not is_source and path.suffix not in (".json", ".yaml", ".yml"):
            continue
        data = _content(root / path, _MAX_SOURCE_BYTES if is_source else reading.MAX_BYTES)
        if data is None:
            notes.append(f"{reading.display(path)} cannot be read or is too large")
        elif is_source:
            rows += source_rows(path, data)
        elif _COMPILED.search(data):
            rows += verdicts.judge(root, path)
    compiled = {each.name for each in rows if each.is_compiled}
    rows = [each for each in rows if each.is_compiled or each.name not in compiled]
    return Repository(rows=rows, test_folders=test_folders, notes=notes)


def _files(root: Path, notes: list[str]) -> Iterator[Path]:
    def on_error(error: OSError) -> None:
        notes.append(f"{reading.display(error.filename)} cannot be read")

    for name, folders, files in os.walk(root, onerror=on_error):
        folder = Path(name).relative_to(root)
        if (folder.parts and _MARKS & {*folders, *files}) or len(folder.parts) > _MAX_DEPTH:
            folders.clear()
            continue
        folders[:] = sorted(each for each in folders if not _SKIPPED.fullmatch(each))
        yield from (folder / each for each in sorted(files) if not os.path.islink(root / folder / each))


def _content(path: Path, max_bytes: int) -> bytes | None:
    """Return the content of a file; None if it cannot be read, is larger, or is not a regular file."""
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > max_bytes:
            return None
        with regular_files.open_regular(path) as file:
            return file.read(max_bytes)
    except OSError:
        return None


def source_rows(path: Path, data: bytes) -> list[Row]:
    """Return the pipelines that a Python file defines with kfp, and how to compile them; none in a broken file."""
    try:
        with warnings.catch_warnings():
            # Of the file's literals, on the terminal of a user who has not written them.
            warnings.simplefilter("ignore")
            tree = ast.parse(data if _KFP.search(data) else b"")
        functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
        uses = {each.name: [ast.unparse(decorator) for decorator in each.decorator_list] for each in functions}
        components = {name for name, found in uses.items() if "component" in "".join(found)}
        return [
            _row(path, each, found, components, is_nested=each not in tree.body, is_v1=b"kfp.v2" in data)
            for each in functions
            for found in uses[each.name]
            if _PIPELINE.fullmatch(found)
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _row(path: Path, function: ast.FunctionDef, decorator: str, components: set[str], **is_: bool) -> Row:
    named = _NAME.search(decorator)
    name = named[1] if named else function.name.replace("_", "-").lower()
    calls = [ast.unparse(each.func) for each in ast.walk(function) if isinstance(each, ast.Call)]
    used = dict.fromkeys(each for each in calls if each in components or each.endswith("Op"))
    details = [f"uses {', '.join(used)}"] if used else []
    words = ["dsl-compile-v2"] if is_["is_v1"] else ["kfp", "dsl", "compile"]
    words += ["--py", str(path), "--function", function.name, "--output"]
    words.append(f"{verdicts.identifier(name, '-')}.{'json' if is_['is_v1'] else 'yaml'}")
    command: Any = shlex.join(words)
    if is_["is_nested"] or not command.isprintable():
        command = ""
        details.append(f"call the code of the file that compiles {function.name}, since kfp's command cannot")
    where = f"{reading.display(path)}:{function.lineno}"
    return Row(path=where, name=name, verdict=verdicts.SOURCE, details=details, command=command)
