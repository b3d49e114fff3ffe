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
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from localvertex._base.userinput import reading
from localvertex._base.userinput.errors import UserError
from localvertex.init import verdicts
from localvertex.init.verdicts import Row
from localvertex.store import record

_MAX_SECONDS = 45.0
_MAX_FILES = 200_000
_MAX_DEPTH = 100
_MAX_SOURCE_BYTES = 500_000
_SKIPPED = re.compile(r"\..*|node_modules|site-packages|__pycache__")
_MARKS = {"pyvenv.cfg", "conda-meta", record.PRIVATE}
"""Files that mark virtual environments and localvertex's work folders, which are not searched."""
_COMPILED = re.compile(rb"pipelineSpec|pipeline_spec|deploymentSpec|deployment_spec")
_KFP = re.compile(rb"^\s*(?:from|import)\s+kfp\b", re.MULTILINE)
_PIPELINE = re.compile(r"(?:\w+\.)*pipeline(?:\(.*\))?", re.DOTALL)
_NAME = re.compile(r"(?:\bname=|\.?pipeline\()'([^']*)'")


def search(root: Path) -> tuple[list[Row], list[Path]]:
    """Return the pipelines of a folder, and the folders with tests for pytest, relative to it.

    Files that cannot be read or are too large are left out.
    """
    rows, test_folders, deadline = list[Row](), list[Path](), time.monotonic() + _MAX_SECONDS
    for number, path in enumerate(_files(root)):
        if number == _MAX_FILES or time.monotonic() > deadline:
            print(f"stopped after {number:,} files; run init in a folder further down")
            break
        if re.fullmatch(r"test_.*\.py|.*_test\.py", path.name):
            test_folders.append(path.parent)
        if path.suffix in (".py", ".json", ".yaml", ".yml"):
            with suppress(UserError):
                data = reading.read_bytes(root / path)
                if path.suffix == ".py":
                    rows += source_rows(path, data)
                elif _COMPILED.search(data):
                    rows += verdicts.judge(root, path)
    compiled, known = {each.name for each in rows if each.is_compiled}, [each.name for each in rows]
    for number, each in enumerate(rows):
        if each.command and known.count(each.name) > 1:
            # Another function's pipeline has the same name, and would be written to the same file.
            words = each.command.rpartition(" ")[0]
            rows[number] = replace(
                each, command=f"{words} {verdicts.identifier(each.path, '-')}.{each.command.rpartition('.')[2]}"
            )
    return [each for each in rows if each.is_compiled or each.name not in compiled], test_folders


def _files(root: Path) -> Iterator[Path]:
    """Yield the regular files below a folder, relative to it."""
    for name, folders, files in os.walk(root):
        folder = Path(name).relative_to(root)
        if (folder.parts and _MARKS & {*folders, *files}) or len(folder.parts) > _MAX_DEPTH:
            folders.clear()
            continue
        folders[:] = sorted(each for each in folders if not _SKIPPED.fullmatch(each))
        for each in sorted(files):
            with suppress(OSError):
                if stat.S_ISREG(os.lstat(root / folder / each).st_mode):
                    yield folder / each


def source_rows(path: Path, data: bytes) -> list[Row]:
    """Return the pipelines that a Python file defines with kfp, and how to compile them; none in a broken file."""
    if not _KFP.search(data) or len(data) > _MAX_SOURCE_BYTES:
        return []
    try:
        with warnings.catch_warnings():
            # Of the file's literals, on the terminal of a user who has not written them.
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
        uses = {each.name: [ast.unparse(decorator) for decorator in each.decorator_list] for each in functions}
        components = {name for name, found in uses.items() if "component" in "".join(found)}
        program = ["dsl-compile-v2"] if b"kfp.v2" in data else ["kfp", "dsl", "compile"]
        return [
            _row(path, each, found, components, program if each in tree.body else [])
            for each in functions
            for found in uses[each.name]
            if _PIPELINE.fullmatch(found)
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _row(path: Path, function: ast.FunctionDef, decorator: str, components: set[str], program: list[str]) -> Row:
    named = _NAME.search(decorator)
    name = named[1] if named else function.name.replace("_", "-").lower()
    calls = [ast.unparse(each.func) for each in ast.walk(function) if isinstance(each, ast.Call)]
    used = dict.fromkeys(each for each in calls if each in components or each.endswith("Op"))
    output = f"{verdicts.identifier(name, '-')}.{'json' if len(program) == 1 else 'yaml'}"
    command = shlex.join([*program, "--py", str(path), "--function", function.name, "--output", output])
    details = [f"uses {', '.join(used)}"] if used else []
    if not program or not command.isprintable():
        command = ""
        details.append("run the code that compiles it: kfp's command cannot find it")
    where = f"{reading.display(path)}:{function.lineno}"
    return Row(path=where, name=name, verdict=verdicts.SOURCE, details=details, command=command)
