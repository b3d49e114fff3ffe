"""Python steps that need what only their base image or another interpreter has: found before they start.

Only the text of a step is read, and nothing is imported.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from localvertex.containers.choice import Choice
from localvertex.containers.stand_ins import StandIn, advice, is_plain, package_of
from localvertex.errors import Refusal
from localvertex.executors.python_step import PythonStepExecutor, installs_packages
from localvertex.processes.interpreters import OWN
from localvertex_base.compiled.spec import Component, Container, Pipeline

_MAY_FIND_MORE = re.compile(r"\bpip\b|\bsys\.path\b|\bsite\b|PYTHONPATH")
"""Steps that install packages or look for modules themselves."""


def refusals(pipeline: Pipeline, components: Iterable[Component], choice: Choice) -> list[str]:
    """Return one reason for each Python step that cannot import what it needs."""
    reasons: list[str] = []
    for component in components:
        container = pipeline.executors.get(component.executor)
        if isinstance(container, Container) and not container.replacement and PythonStepExecutor().accepts(container):
            stand_in = choice.stand_ins.of(container.image, container.command)
            reasons += _problems(container, stand_in)
    return reasons


def _problems(container: Container, stand_in: StandIn) -> Iterator[str]:
    python, installs = stand_in.python, installs_packages(container.command) or bool(stand_in.packages)
    if python is not OWN and not python.has("kfp") and not installs:
        yield f"{container.path}: {python.path} has no kfp, which the step needs; run: {python.path} -m pip install kfp"
    if installs or is_plain(container.image) or _MAY_FIND_MORE.search(container.command[-1]):
        return
    for module in _imported(container.command[-1]):
        if not (module in sys.stdlib_module_names or stand_in.finds(module)):
            if folder := _source_folder(module):
                # An index may have another package with the name of the user's module.
                table = f'[image."{container.image}"]'
                text = f'its base image has {module}, and so has this repository; add to {table}: path = "{folder}"'
                yield Refusal(f"{container.path}: {text}", "image", container.image)
                continue
            text = f"{container.path}: {advice(container.image, module)}"
            yield Refusal(text, "install", f"{container.image} {package_of(module)}")


def _source_folder(module: str) -> str:
    """Return the folder in which the user's sources have a module, as a user would write it; empty for none."""
    folders = (Path(each) for each in (".", "src"))
    found = (each for each in folders if (each / module).is_dir() or (each / f"{module}.py").is_file())
    return str(next(found, ""))


def _imported(source: str) -> set[str]:
    """Return the modules that a component imports in any case: at the beginning of its file or its function."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    statements = [*tree.body, *(each for function in functions[-1:] for each in function.body)]
    names = {alias.name for each in statements if isinstance(each, ast.Import) for alias in each.names}
    names |= {each.module or "" for each in statements if isinstance(each, ast.ImportFrom) and not each.level}
    return {name.partition(".")[0] for name in names}
