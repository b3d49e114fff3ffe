"""Python steps that need what only their base image or another interpreter has: found before they start.

Only the text of a step is read, and nothing is imported.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from localvertex.containers.choice import Choice
from localvertex.containers.stand_ins import advice, is_plain, package_of
from localvertex.errors import Refusal
from localvertex.executors.python_step import PythonStepExecutor, installs_packages
from localvertex.processes.interpreters import OWN
from localvertex_base.compiled.spec import Pipeline

_MAY_FIND_MORE = re.compile(r"\bpip\b|\bsys\.path\b|\bsite\b|PYTHONPATH")
"""Steps that install packages or look for modules themselves."""


def refusals(pipeline: Pipeline, choice: Choice) -> Iterator[str]:
    """Yield one reason for each module that a Python step needs and cannot import."""
    for container in pipeline.containers:
        if container.replacement or not PythonStepExecutor().accepts(container):
            continue
        stand_in, source = choice.stand_ins.of(container.image, container.command), container.command[-1]
        python, installs = stand_in.python, installs_packages(container.command) or bool(stand_in.packages)
        if python is not OWN and not python.has("kfp") and not installs:
            text = f"{python.path} has no kfp, which the step needs; run: {python.path} -m pip install kfp"
            yield f"{container.path}: {text}"
        finds_more = installs or is_plain(container.image) or _MAY_FIND_MORE.search(source)
        for module in () if finds_more else _imported(source) - sys.stdlib_module_names:
            if stand_in.finds(module):
                continue
            if folder := _source_folder(module):
                # An index may have another package with the name of the user's module.
                table = f'[image."{container.image}"]'
                text = f'its base image has {module}, and so has this repository; add to {table}: path = "{folder}"'
                yield Refusal(f"{container.path}: {text}", "image", container.image)
            else:
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
