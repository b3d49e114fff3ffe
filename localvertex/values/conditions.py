"""Trigger conditions and value selectors, both written in CEL, the Common Expression Language."""

import json
import re
from typing import Any

import cel

FUNCTIONS = {"int", "double", "uint", "string", "bool", "size", "contains", "startsWith", "endsWith", "matches", "type"}
"""Named functions that a condition may call; operators are named like `_==_` or `@in` by the compiler."""

MAX_CHARACTERS = 4096
"""kfp's are below 500. The library recurses, without a guard, where names and operators are strung together."""

REFERENCE = re.compile(r"inputs\.parameter_values\[(['\"])(.*?)\1\]")


class ConditionError(Exception):
    """An expression cannot be compiled or evaluated; the text says why, in one line."""


def check(expression: str, *, variables: set[str], functions: set[str]) -> None:
    """Compiles an expression and checks what it refers to.

    Raises:
        ConditionError: it is not CEL, or it uses a name that there will not be.
    """
    if len(expression) > MAX_CHARACTERS:
        raise ConditionError(f"is longer than {MAX_CHARACTERS} characters")
    try:
        references = cel.compile(expression).references()
    except (ValueError, RuntimeError, TypeError) as error:
        raise ConditionError(f"not valid in CEL: {one_line(error)}") from None
    unknown = [name for name in references["variables"] if name not in variables]
    unknown += [name for name in references["functions"] if name.isidentifier() and name not in functions]
    if unknown:
        raise ConditionError(f"uses {', '.join(map(repr, unknown))}, which the service does not offer")


def check_condition(expression: str, inputs: set[str]) -> None:
    """Checks a trigger condition of a task with these input parameters.

    Raises:
        ConditionError: see `check`; or it refers to an input that the task does not have.
    """
    check(expression, variables={"inputs"}, functions=FUNCTIONS)
    for _, name in REFERENCE.findall(expression):
        if name not in inputs:
            raise ConditionError(f"refers to the input {name!r}, which the task does not have")


def check_selector(expression: str) -> None:
    """Checks a parameterExpressionSelector.

    Raises:
        ConditionError: see `check`.
    """
    check(expression, variables={"string_value"}, functions={*FUNCTIONS, "parseJson"})


def holds(expression: str, parameters: dict[str, Any]) -> bool:
    """Whether a condition is true for a task's input parameters.

    Raises:
        ConditionError: it cannot be evaluated with these values, or gives no truth value.
    """
    result = evaluate(expression, cel.Context(variables={"inputs": {"parameter_values": parameters}}))
    if not isinstance(result, bool):
        raise ConditionError(f"gave {result!r}, expected true or false")
    return result


def select(expression: str, value: Any) -> Any:
    """The part of a value that a selector names, for instance one field of a ParallelFor item.

    Raises:
        ConditionError: the value has no such part.
    """
    text = value if isinstance(value, str) else json.dumps(value)
    context = cel.Context(variables={"string_value": text}, functions={"parseJson": json.loads})
    return evaluate(expression, context)


def evaluate(expression: str, context: cel.Context) -> Any:
    """The value of an expression."""
    try:
        return cel.compile(expression).execute(context)
    except (ValueError, RuntimeError, TypeError, KeyError) as error:
        raise ConditionError(f"cannot be evaluated: {one_line(error)}") from None


def one_line(error: BaseException) -> str:
    """The first sentence of a library error, without line breaks."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "..."
