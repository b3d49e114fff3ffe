"""The values a user gives to a compiled pipeline's parameters, typed by the pipeline's own input definitions."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from userinput.errors import UserError
from userinput.reading import read
from userinput.spelling import did_you_mean, quoted

EXAMPLES = {
    "STRING": "text",
    "NUMBER_INTEGER": "3",
    "NUMBER_DOUBLE": "0.5",
    "BOOLEAN": "true",
    "LIST": '["a", "b"]',
    "STRUCT": '{"a": 1}',
}
"""parameterType of the compiled pipeline -> a value as it is written on the command line."""


def given_parameters(definitions: Mapping[str, Any], options: Sequence[str], path: str | None) -> dict[str, Any]:
    """Return the values of a parameter file and of `NAME=VALUE` options, which win over it.

    Args:
        definitions: `root.inputDefinitions.parameters` of the compiled pipeline.
        options: Texts `NAME=VALUE`; STRING is taken as it is, everything else is read as JSON.
        path: JSON or YAML file with one object; None for none.

    Raises:
        UserError: The file cannot be read, a name is unknown, or a value is of another type.
    """
    values: dict[str, Any] = {}
    if path:
        held = read(path)
        if not isinstance(held, dict):
            raise UserError(f"{path} holds {type(held).__name__}; expected an object of parameter names and values")
        values = {str(name): value for name, value in held.items()}
    for option in options:
        name, separator, text = option.partition("=")
        if not separator:
            raise UserError(f"--parameter is {option!r}; expected NAME=VALUE, e.g. --parameter epochs=3")
        values[name] = _from_text(text, str(definitions.get(name, {}).get("parameterType")))
    return typed(definitions, values)


def typed(definitions: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as their types have them, e.g. 3 for 3.0 where an integer is declared.

    Raises:
        UserError: A name is unknown, a value is of another type or not one of the allowed ones.
    """
    return {name: _typed(name, value, _definition(definitions, name)) for name, value in values.items()}


def require_all(definitions: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Refuse values that lack a parameter without a default.

    Raises:
        UserError: With the names and types of all that are missing.
    """
    missing = [
        f"{name} ({definition.get('parameterType')})"
        for name, definition in definitions.items()
        if name not in values and "defaultValue" not in definition and not definition.get("isOptional")
    ]
    if missing:
        raise UserError(f"no value for {', '.join(missing)}; add --parameter NAME=VALUE for each")


def _definition(definitions: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    if name not in definitions:
        raise UserError(
            f"the pipeline has no parameter {name!r}{did_you_mean(name, definitions)}; "
            f"it has {', '.join(sorted(definitions)) or 'none'}"
        )
    found: Mapping[str, Any] = definitions[name]
    return found


def _from_text(text: str, kind: str) -> Any:
    if kind in ("STRING", "None"):
        return text
    try:
        return json.loads(text.lower() if kind == "BOOLEAN" else text)
    except (ValueError, RecursionError):
        return text  # is refused with its type by `_typed`


def _typed(name: str, value: Any, definition: Mapping[str, Any]) -> Any:
    kind = str(definition.get("parameterType"))
    if isinstance(value, float) and value.is_integer() and kind == "NUMBER_INTEGER":
        value = int(value)
    if not _is(value, kind):
        raise UserError(f"parameter {name!r} is {quoted(value)}; expected {kind}, such as {EXAMPLES.get(kind, 'none')}")
    allowed = definition.get("literals")
    if allowed and value not in allowed:
        raise UserError(f"parameter {name!r} is {quoted(value)}; expected one of {', '.join(map(str, allowed))}")
    return value


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "STRING":
            return isinstance(value, str)
        case "NUMBER_INTEGER":
            return isinstance(value, int) and not isinstance(value, bool)
        case "NUMBER_DOUBLE":
            return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        case "BOOLEAN":
            return isinstance(value, bool)
        case "LIST":
            return isinstance(value, list)
        case "STRUCT":
            return isinstance(value, dict)
    return False
