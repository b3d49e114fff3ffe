"""Find code that needs modules which only its image or another interpreter has, before it starts.

This covers Python steps, and containers that run Python of a source folder. Only text is read, and nothing is imported.
Modules of the folder are followed, so that all that they lack is known at once.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from localvertex._base.compiled.spec import Pipeline
from localvertex._base.userinput.reading import parse_python
from localvertex.containers.choice import Choice
from localvertex.containers.programs import python_target
from localvertex.containers.stand_ins import StandIn, advice, is_plain, source_of
from localvertex.containers.started import started
from localvertex.errors import Refusal
from localvertex.executors.python_step import PythonStepExecutor, installs_packages
from localvertex.processes.interpreters import OWN
from localvertex.values.repository import Repository

_MAY_FIND_MORE = re.compile(r"\bpip\b|\bsys\.path\b|\bsite\b|PYTHONPATH")
"""Code that installs packages or looks for modules itself."""

_COMMENT = re.compile("#.*")

_OF_KFP = frozenset(("google.api_core", "google.auth", "google.cloud.storage", "google.oauth2", "google.protobuf"))

_NAMESPACE = "google"
"""The folder of many packages: its modules are named with the two names below it."""


def refusals(pipeline: Pipeline, choice: Choice, repository: Repository) -> Iterator[str]:
    """Yield one reason for each module that Python code needs and cannot import."""
    for container in pipeline.containers:
        stand_in = choice.stand_ins.of(container.image, (*container.command, *container.args))
        is_step = not container.replacement and PythonStepExecutor().accepts(container)
        python, installs = stand_in.python, installs_packages(container.command) or bool(stand_in.packages)
        if is_step and python is not OWN and not python.has("kfp") and not installs:
            text = f"{python.path} has no kfp, which the step needs; run: {python.path} -m pip install kfp"
            yield f"{container.path}: {text}"
        if is_plain(container.image):
            continue
        scripts = started(container.command) if is_step else []
        for name in [each for each in scripts if not (os.path.isfile(each) or stand_in.path)]:
            text = f"its code starts {name!r} of its base image {container.image!r}, which is not on this machine"
            yield source_of(f"{container.path}: {text}", container.image, container.command, container.path, repository)
        if installs or "PYTHONPATH" in container.env:
            continue
        words = [*container.replacement, *container.args]
        found = (of_step if is_step else of_command)(container.command if is_step else words, stand_in, repository)
        for name in scripts if stand_in.path else ():
            found |= _missing(_text(Path(name)), stand_in, repository, Path(name).parent)
        yield from named(found, container.image, repository, path=container.path, step=container.path)


def named(modules: set[str], image: str, repository: Repository, *, path: str, step: str) -> Iterator[Refusal]:
    """Yield the refusal of each module that the code of an image lacks."""
    for module in sorted(modules):
        way_on = advice(image, module, repository)
        yield Refusal(f"{path}: {way_on}", step=step, table=way_on.table, content=way_on.content)


def of_step(words: Sequence[str], stand_in: StandIn, repository: Repository) -> set[str]:
    """Return the missing modules of a Python step: its function runs."""
    source = words[-1]
    functions = [each for each in parse_python(source).body if isinstance(each, ast.FunctionDef)]
    body = "\n".join(ast.unparse(each) for each in functions[-1].body) if functions else ""
    return _missing(f"{source}\n{body}", stand_in, repository)


def of_command(words: Sequence[str], stand_in: StandIn, repository: Repository) -> set[str]:
    """Return the missing modules of a command that runs Python in place of an image."""
    kind, _, name = python_target([*words]) if stand_in.path and [*words[:1]] == ["python3"] else ("", 0, "")
    if kind == "module":
        return _missing(f"import {name}, {name}.__main__", stand_in, repository)
    file = Path(name)
    return _missing(_text(file), stand_in, repository, file.parent) if kind == "file" and file.is_file() else set()


def _missing(source: str, stand_in: StandIn, repository: Repository, script_folder: Path | None = None) -> set[str]:
    """Return the modules that code imports in any case, and that neither its folders nor its interpreter have.

    A module that only the repository has counts as missing, and so do its imports.

    Args:
        source: The code.
        stand_in: What runs in place of its image.
        repository: Repository with the folder that would be proposed for a module.
        script_folder: The folder of its script.
    """
    paths = map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    folders = [each for each in (script_folder, stand_in.path, *paths) if each]
    waiting, missing, seen = [(source, "")], set[str](), {*sys.stdlib_module_names}
    while waiting:
        text, package = waiting.pop()
        if _MAY_FIND_MORE.search(_COMMENT.sub("", text)):
            # A module that a script imports may find more for the script itself.
            return missing & {*_imported(source, "")} if script_folder is None else set()
        for name in sorted(_imported(text, package) - seen):
            seen.add(name)
            path, top = name.replace(".", "/"), name.partition(".")[0]
            # A folder without a file of its own, or a module in another language.
            is_here = any((each / top).is_dir() or [*each.glob(f"{top}.*")] for each in folders)
            if not is_here and top not in sys.stdlib_module_names and not stand_in.finds(name):
                missing.add(".".join(name.split(".")[:3]) if top == _NAMESPACE else top)
                folders += [Path(each) for each in [repository.source_of(name)] if each]
            files = [each / inner for each in folders for inner in (f"{path}/__init__.py", f"{path}.py")]
            if file := next((each for each in files if each.is_file()), None):
                waiting.append((_text(file), name if file.name == "__init__.py" else name.rpartition(".")[0]))
    leaves = {each for each in missing if not any(other.startswith(f"{each}.") for other in missing)}
    # A module of Google's is missing only if its package is known and does not come with kfp.
    return {
        each
        for each in leaves
        if each.partition(".")[0] != _NAMESPACE or (each not in _OF_KFP and repository.package_of(each))
    }


def _imported(source: str, package: str) -> set[str]:
    """Return the modules that code imports in any case, each with the packages in which it is."""
    names = set()
    for each in parse_python(source).body:
        if isinstance(each, ast.Import):
            names |= {alias.name for alias in each.names}
        elif isinstance(each, ast.ImportFrom):
            parts = package.split(".") if each.level else []
            base = ".".join(filter(None, [*parts[: len(parts) + 1 - each.level], each.module]))
            inner = ["" if alias.name == "*" else alias.name for alias in each.names]
            names |= {".".join(filter(None, [base, name])) for name in inner}
    parts_of = [each.split(".") for each in names]
    return {".".join(parts[: number + 1]) for parts in parts_of for number in range(len(parts))}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return ""
