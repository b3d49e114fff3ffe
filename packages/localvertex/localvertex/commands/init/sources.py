"""Find the pipelines that a Python file defines, in its syntax tree: the file is never imported or run."""

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PIPELINE = re.compile(r"kfp(\.v2)?(\.dsl)?\.pipeline")
_COMPONENT = re.compile(
    r"kfp(\.v2)?(\.dsl|\.components)?\.(component|container_component|load_component_from_\w+|importer)"
    r"|google_cloud_pipeline_components\..*"
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Source:
    """A pipeline function."""

    path: Path
    """The file, relative to the searched folder."""
    line: int
    function: str
    name: str
    """The pipeline's name, as far as the file has it as a text; otherwise the function's, as kfp makes it."""
    components: tuple[str, ...]
    """What it calls that is a component, as written."""
    is_nested: bool
    """Whether it is defined in another function, where kfp's command does not find it."""
    is_v1: bool
    """Whether it uses kfp.v2, a package of kfp 1.8."""


def read(path: Path, data: bytes) -> list[Source]:
    """Return the pipelines in a file's content; none if it is not Python."""
    try:
        with warnings.catch_warnings():
            # Of the file's literals, on the terminal of a user who has not written them.
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        origins = _origins(tree)
        return list(_pipelines(path, tree, origins, is_nested=False))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _origins(tree: ast.Module) -> dict[str, str]:
    """Return what the names of a file stand for, for example `dsl` for kfp.dsl; components defined here included."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                found[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            uses = [_origin(each, found) for each in node.decorator_list]
            if components := [each for each in uses if _COMPONENT.fullmatch(each)]:
                found[node.name] = components[0]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            origin = _origin(node.value, found)
            if _COMPONENT.fullmatch(origin):
                found |= {each.id: origin for each in node.targets if isinstance(each, ast.Name)}
    return found


def _origin(node: ast.expr, origins: dict[str, str]) -> str:
    """Return the full name of what an expression names or calls; empty for another expression."""
    names: list[str] = []
    node = node.func if isinstance(node, ast.Call) else node
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([origins.get(node.id, node.id), *reversed(names)])


def _pipelines(path: Path, parent: ast.AST, origins: dict[str, str], *, is_nested: bool) -> Iterator[Source]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, _Function):
            for decorator in node.decorator_list:
                if _PIPELINE.fullmatch(origin := _origin(decorator, origins)):
                    yield Source(
                        path=path,
                        line=node.lineno,
                        function=node.name,
                        name=_name(decorator) or node.name.replace("_", "-").lower(),
                        components=tuple(dict.fromkeys(_calls(node, origins))),
                        is_nested=is_nested,
                        is_v1=origin.startswith("kfp.v2"),
                    )
        yield from _pipelines(path, node, origins, is_nested=is_nested or isinstance(node, _Function))


def _name(decorator: ast.expr) -> str:
    """Return the name that a decorator gives its pipeline as a text; empty without one."""
    if not isinstance(decorator, ast.Call):
        return ""
    named = [each.value for each in decorator.keywords if each.arg == "name"]
    for value in [*named, *decorator.args[:1]]:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
    return ""


def _calls(function: _Function, origins: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _COMPONENT.fullmatch(_origin(node, origins)):
            yield ast.unparse(node.func)
