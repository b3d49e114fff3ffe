"""Which scripts of its image a container starts: named by its command, in the text of a shell, or in Python code.

Code counts as far as it runs in any case, and as nothing before may have brought the script.
"""

import ast
import os
from collections.abc import Iterator, Sequence

from localvertex._base.userinput.reading import parse_python
from localvertex.containers.programs import SHELLS, is_python, python_target, scripts_of_shell

_COMPONENT = "ephemeral_component"
"""Module in the command of a Python component."""

_RUNS_TEXT = frozenset(("Popen", "call", "check_call", "check_output", "getoutput", "run", "system"))
_VALUE = "VALUE"
"""Stands for a value that only the run knows."""


def started(words: Sequence[str]) -> list[str]:
    """Return the scripts that a command starts, as it names them."""
    if not words:
        return []
    if any(_COMPONENT in word for word in words):
        return [*_of_code(next((word for word in words if "def " in word), ""))]
    if is_python(words[0]):
        kind, _, name = python_target([*words])
        return [name] if kind == "file" else []
    if os.path.basename(words[0]) not in SHELLS or len(words) < 2:
        return []
    number = next((number for number, word in enumerate(words[1:], 1) if not word.startswith(("-", "+"))), 0)
    is_text = number > 1 and not words[number - 1].startswith("--") and "c" in words[number - 1]
    return scripts_of_shell(words[number]) if is_text else [words[number]] if number == 1 else []


def _of_code(source: str) -> Iterator[str]:
    """Yield the scripts that the function of a Python step starts, those that its code mentions before left out."""
    functions = [each for each in parse_python(source).body if isinstance(each, ast.FunctionDef)]
    mentioned: list[str] = []
    for statement in _in_any_case(functions[-1].body if functions else []):
        is_simple = isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.Assert | ast.Return)
        nodes = [*ast.walk(statement)]
        texts = [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        for name in [name for node in nodes if is_simple for name in _of_node(node)]:
            # The code may have brought a relative one under any name, and this one if it has named a folder of it.
            folder = "/".join(name.split("/")[:2])
            is_certain = name.startswith("/") and not name.startswith("/gcs/")
            if is_certain and not any(folder in text or text == "/" for text in mentioned):
                yield name
        mentioned += texts


def _in_any_case(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _in_any_case(statement.body)
        else:
            yield statement


def _of_node(node: ast.AST) -> list[str]:
    """Return the scripts that a list of words, or the text of a call, starts."""
    if isinstance(node, ast.List):
        words = [_text(each) for each in node.elts]
        return [each for each in started(words) if each.endswith((".py", ".sh")) and _VALUE not in each]
    if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).rpartition(".")[2] in _RUNS_TEXT:
        return [] if isinstance(node.args[0], ast.List) else scripts_of_shell(_text(node.args[0]))
    return []


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "python3" if ast.unparse(node) == "sys.executable" else _VALUE
