"""Trigger conditions and value selectors, both written in CEL, the Common Expression Language."""

import json
import re
from collections.abc import Callable
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import on_one_line

_FUNCTIONS = {
    "int",
    "double",
    "uint",
    "string",
    "bool",
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "type",
}
"""Named functions that a condition may call; the compiler names operators like `_==_` or `@in`."""

_MAX_CHARACTERS = 4096
"""kfp's expressions are below 500. The library recurses without limit along chains of names and operators."""

_REFERENCE = re.compile(r"inputs\.parameter(?:_value)?s\[(['\"])(.*?)\1\]")


class ConditionError(Exception):
    """An expression cannot be compiled or evaluated; the text gives the reason in one line."""


def check(expression: str, *, variables: set[str], functions: set[str]) -> None:
    """Compile an expression and check what it refers to.

    Raises:
        ConditionError: It is not CEL, or it uses a name that does not exist.
    """
    if len(expression) > _MAX_CHARACTERS:
        raise ConditionError(f"is longer than {_MAX_CHARACTERS} characters")
    try:
        references = _library().compile(expression).references()
    except (ValueError, RuntimeError, TypeError) as error:
        raise ConditionError(f"is not valid CEL: {on_one_line(error, 200)}") from None
    unknown = [name for name in references["variables"] if name not in variables]
    unknown += [name for name in references["functions"] if name.isidentifier() and name not in functions]
    if unknown:
        raise ConditionError(f"uses {', '.join(map(repr, unknown))}, which the service does not support")


def check_condition(expression: str, inputs: set[str]) -> None:
    """Check the trigger condition of a task with these input parameters.

    Raises:
        ConditionError: See `check`; or it refers to an input that the task does not have.
    """
    check(expression, variables={"inputs"}, functions=_FUNCTIONS)
    for _, name in _REFERENCE.findall(expression):
        if name not in inputs:
            raise ConditionError(f"refers to the input {name!r}, which the task does not have")


def check_selector(expression: str) -> None:
    """Check a parameterExpressionSelector.

    Raises:
        ConditionError: See `check`.
    """
    check(expression, variables={"string_value"}, functions={*_FUNCTIONS, "parseJson"})


def holds(expression: str, parameters: JsonObject) -> bool:
    """Return whether a condition is true for a task's input parameters.

    Raises:
        ConditionError: It cannot be evaluated with these values, or its result is not a boolean.
    """
    typed = {name: _to_type(value) for name, value in parameters.items()}
    inputs = {"parameter_values": parameters, "parameters": typed}
    result = evaluate(expression, {"inputs": inputs})
    if not isinstance(result, bool):
        raise ConditionError(f"evaluates to {result!r}; expected true or false")
    return result


def _to_type(value: Any) -> JsonObject:
    """Return a value as conditions of kfp 1.8 read it: `.int_value`, `.double_value` or `.string_value`."""
    is_number = isinstance(value, int | float)
    text = value if isinstance(value, str) else json.dumps(value)
    return {
        "int_value": int(value) if is_number else 0,
        "double_value": float(value) if is_number else 0.0,
        "string_value": "" if is_number else text,
    }


def select(expression: str, value: Any) -> Any:
    """Return the part of a value that a selector names, for example one field of a ParallelFor item.

    Raises:
        ConditionError: The value has no such part.
    """
    text = value if isinstance(value, str) else json.dumps(value)
    return evaluate(expression, {"string_value": text}, {"parseJson": json.loads})


def evaluate(expression: str, variables: JsonObject, functions: dict[str, Callable[..., Any]] | None = None) -> Any:
    """Evaluate an expression."""
    cel = _library()
    try:
        return cel.compile(expression).execute(cel.Context(variables=variables, functions=functions or {}))
    except (ValueError, RuntimeError, TypeError, KeyError) as error:
        raise ConditionError(f"cannot be evaluated: {on_one_line(error, 200)}") from None


def _library() -> Any:
    """Import cel when an expression is met: it brings a terminal program along, a third of the engine's start."""
    import cel

    return cel
