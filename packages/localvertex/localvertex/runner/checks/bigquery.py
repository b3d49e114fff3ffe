"""Steps whose code calls BigQuery: the queries and tables that can be read off it, for which a user names files.

Only the text of a step is read. Queries that it makes of other values are named when the step sends them.
"""

import ast
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice, product
from typing import Any

from localvertex._base.compiled.payload import INPUT_PARAMETER
from localvertex._base.compiled.spec import Container, Importer, Pipeline
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_python
from localvertex.errors import Refusal
from localvertex.machines.job.values import is_known
from localvertex.machines.pipeline.graph import Graph, Step
from localvertex.runner.checks.given_outputs import named_tasks

_IMPORT = re.compile(r"\bgoogle\.cloud(?:\.| import )bigquery\b")
_UNANSWERED = re.compile(
    r"\b(?:query_parameters|load_table_from_\w+|insert_rows\w*|(?:copy|create|delete|extract|update)_(?:dataset|table))\b"
)
"""Queries that no file of rows answers."""

_ASKS = {"query": "query", "query_and_wait": "query", "list_rows": "table", "get_table": "table"}
"""Methods of the client that files answer, with the name of their first argument."""

_SQL = re.compile(
    r"(?:\s|\(|--[^\n]*\n|#[^\n]*\n)*(?:select|with|create|insert|update|delete|merge|declare|drop|export)\s", re.I
)
_TABLE = re.compile(r"[\w-]+(?:\.[\w-]+){1,2}")
_FIELD = re.compile(r"\{(\w*)\}")
_MAX_VALUES = 20


def calls(pipeline: Pipeline, values: Mapping[str, Any], *, has_credentials: bool) -> list[Refusal]:
    """Return one line for each step whose code calls BigQuery, with the files that it needs as far as they are known.

    A condition may leave the step out.

    Args:
        pipeline: The pipeline.
        values: The values of its parameters, as far as they are known.
        has_credentials: Whether the calls reach BigQuery.
    """
    callers = [
        each
        for each in named_tasks(pipeline)
        if not has_credentials and is_caller(pipeline.executor_of(each.spec)) and not each.component.bigquery
    ]
    found: dict[str, JsonObject] = {}
    # A check of the whole pipeline refuses what has no steps.
    with suppress(UserError):
        known = {name: value for name, value in values.items() if value is not None}
        for step in Graph(pipeline=pipeline, parameters=known).steps() if callers else ():
            if is_caller(step.container):
                asked = _asked_for(step.container.command[-1], _arguments(step))
                found.setdefault(step.path, {}).update(dict.fromkeys(asked, "path/to/file"))
    reasons = []
    for task in callers:
        executor, names = pipeline.executor_of(task.spec), found.get(task.spec.path)
        text = f"{task.path}: calls BigQuery: name files with the rows of its queries and tables"
        if isinstance(executor, Container) and _UNANSWERED.search(executor.command[-1]):
            text = f"{task.path}: calls BigQuery with more than queries: give its outputs"
            reasons.append(Refusal(text, step=task.path))
        elif names:
            reasons.append(Refusal(text, step=task.path, table=("step", task.path), content={"bigquery": names}))
        else:
            reasons.append(Refusal(text))
    return reasons


def is_caller(executor: Container | Importer | None) -> bool:
    """Return whether the code of a step calls BigQuery."""
    return isinstance(executor, Container) and bool(_IMPORT.search("\n".join(executor.command)))


def _arguments(step: Step) -> JsonObject:
    """Return the arguments of a step that are known, with those in the text of others."""
    known = {name: each.value for name, each in step.inputs.items() if is_known(each.value)}

    def filled(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return INPUT_PARAMETER.sub(lambda found: str(known.get(found[1], found[0])), value)

    every = {name: filled(value) for name, value in known.items()}
    return {name: value for name, value in every.items() if "{{$" not in str(value)}


def _asked_for(source: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the queries and the tables that a component's code asks for with these arguments.

    Texts of the code are read, the names that only they are given, and f-strings, sums and `format` of them.
    """
    tree = parse_python(source)
    nodes = [*ast.walk(tree)]
    own = [each.args for each in tree.body if isinstance(each, ast.FunctionDef)][-1:]
    given: dict[str, list[ast.expr]] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                given.setdefault(name, []).append(value)
            case ast.For(target=ast.Name(id=name), iter=ast.List(elts=items) | ast.Tuple(elts=items)):
                given.setdefault(name, []).append(ast.List(elts=items))
    stored = Counter(each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    stored.update(each.arg for each in nodes if isinstance(each, ast.arg))
    stored.subtract(each.arg for signature in own for each in (*signature.args, *signature.kwonlyargs))

    def values(node: ast.expr | None, names: tuple[str, ...] = ()) -> list[Any]:
        """Return what a node may be; nothing if that is not known."""

        def texts(parts: list[ast.expr | None]) -> list[str]:
            every = product(*(values(each, names) for each in parts))
            return ["".join(map(str, each)) for each in islice(every, _MAX_VALUES)]

        match node:
            case ast.Constant(value=str() | int() | float() as value):
                return [value]
            case ast.Name(id=name) if name in arguments and not stored[name]:
                return [arguments[name]]
            case ast.Name(id=name) if name not in names and stored[name] == len(given.get(name, ())):
                found = [values(each, (*names, name)) for each in given.get(name, ())]
                return [value for each in found for value in each] if all(found) else []
            case ast.List(elts=items):
                found = [values(each, names) for each in items]
                return [value for each in found for value in each] if all(found) else []
            case ast.JoinedStr(values=parts):
                return texts([each.value if isinstance(each, ast.FormattedValue) else each for each in parts])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return texts([left, right])
            case ast.Call(func=ast.Attribute(value=text, attr="format"), args=positions, keywords=named):
                fields = dict(zip(map(str, range(len(positions))), positions, strict=True))
                fields |= {each.arg: each.value for each in named if each.arg}
                return [each for template in values(text, names) for each in texts(_pieces(template, fields))]
        return []

    found: dict[str, None] = {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=method), args=args, keywords=keywords) if method in _ASKS:
                name = _ASKS[method]
                first = next((each.value for each in keywords if each.arg == name), args[0] if args else None)
                form = _SQL.match if name == "query" else _TABLE.fullmatch
                found |= {" ".join(text.split()): None for text in map(str, values(first)) if form(text)}
    return [*found]


def _pieces(template: Any, fields: Mapping[str, ast.expr]) -> list[ast.expr | None]:
    """Return the parts of a template of `format`; None for one that is not known."""
    parts, position = list[ast.expr | None](), 0
    for number, text in enumerate(_FIELD.split(str(template))):
        if not number % 2:
            parts.append(None if re.search("[{}]", text) else ast.Constant(value=text))
            continue
        parts.append(fields.get(text or str(position)))
        position += not text
    return parts
