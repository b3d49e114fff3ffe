"""Python steps that need what only their base image or another interpreter has: found before they start.

Only the text of a step is read, and nothing is imported.
"""

import ast
import re
import sys
from collections.abc import Iterator

from localvertex._base.compiled.spec import Pipeline
from localvertex.containers.choice import Choice
from localvertex.containers.stand_ins import advice, is_plain
from localvertex.errors import Refusal
from localvertex.executors.python_step import PythonStepExecutor, installs_packages
from localvertex.processes.interpreters import OWN
from localvertex.values.repository import Repository

_MAY_FIND_MORE = re.compile(r"\bpip\b|\bsys\.path\b|\bsite\b|PYTHONPATH")
"""Steps that install packages or look for modules themselves."""


def refusals(pipeline: Pipeline, choice: Choice, repository: Repository) -> Iterator[str]:
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
            if not stand_in.finds(module):
                way_on = advice(container.image, module, repository)
                text = f"{container.path}: {way_on}"
                yield Refusal(text, step=container.path, table=way_on.table, content=way_on.content)


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
