"""Parameters of a pipeline: their types, and the values that users give to them.

Compiled files and the service carry numbers as doubles (protobuf Struct): an integer 1 arrives as `1.0`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.nested import changed
from localvertex._base.userinput.doubles import MAX_EXACT, as_doubles
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import display, parse_json, read_all, text_of
from localvertex._base.userinput.spelling import did_you_mean, quote


class ParameterType(StrEnum):
    """Types of parameters (ParameterType.ParameterTypeEnum of kubeflow's pipeline_spec.proto)."""

    NUMBER_DOUBLE = "NUMBER_DOUBLE"
    NUMBER_INTEGER = "NUMBER_INTEGER"
    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    LIST = "LIST"
    STRUCT = "STRUCT"
    TASK_FINAL_STATUS = "TASK_FINAL_STATUS"
    TASK_CONFIG = "TASK_CONFIG"


_PYTHON_TYPES: dict[ParameterType, type] = {
    ParameterType.STRING: str,
    ParameterType.BOOLEAN: bool,
    ParameterType.LIST: list,
    ParameterType.STRUCT: dict,
}
EXAMPLES = {
    ParameterType.STRING: "text",
    ParameterType.NUMBER_INTEGER: "3",
    ParameterType.NUMBER_DOUBLE: "0.5",
    ParameterType.BOOLEAN: "true",
    ParameterType.LIST: '["a", "b"]',
    ParameterType.STRUCT: '{"a": 1}',
}
"""Type -> a value as it is written on the command line."""


@dataclass(frozen=True, kw_only=True)
class ParameterSpec:
    """A declared input or output parameter."""

    type: ParameterType
    default: Any = None
    is_optional: bool = False
    description: str = ""
    literals: tuple[Any, ...] = ()
    """The only values allowed; empty for any."""

    @property
    def is_required(self) -> bool:
        """Whether a value has to be given."""
        return self.default is None and not self.is_optional


Declared = Mapping[str, ParameterSpec]


class WrongValue(UserError):
    """A parameter cannot have this value; `text` is for a form, which has its name beside it."""

    def __init__(self, name: str, found: str, expected: str) -> None:
        super().__init__(f"parameter {name!r} is {found}; expected {expected}")
        self.text = f"found {found}; expected {expected}"


def read_given(declared: Declared, options: Sequence[str], path: str | Path | None = None) -> JsonObject:
    """Return the values of a parameter file and of `NAME=VALUE` options, which override the file.

    Args:
        declared: The pipeline's parameters by name.
        options: Texts `NAME=VALUE`; a STRING is taken as it is, or from a file by `@FILE` (`@@` for a leading @), and
            everything else is read as JSON.
        path: JSON or YAML file with one object; None for no file.

    Raises:
        UserError: The file cannot be read, a name is unknown, or a value is of another type.
    """
    values = _from_file(path) if path else {}
    for option in options:
        name, separator, text = option.partition("=")
        if not separator:
            raise UserError(f"--parameter is {option!r}; expected NAME=VALUE, e.g. --parameter epochs=3")
        kind = _declaration(name, declared).type
        # Not in from_text, which also reads forms: a page must not read files of the server.
        values[name] = text_of(text) if kind is ParameterType.STRING else from_text(text, kind)
    return convert_all(declared, values)


def convert_all(declared: Declared, values: Mapping[str, Any]) -> JsonObject:
    """Return the values converted to their types, e.g. 3.0 to 3 for an integer; null is left out.

    Raises:
        UserError: A name is unknown, or a value is of another type or not one of the allowed ones.
    """
    return {
        name: _convert_each(name, value, spec)
        for name, value, spec in [(name, value, _declaration(name, declared)) for name, value in values.items()]
        if value is not None
    }


def require_all(declared: Declared, values: Mapping[str, Any]) -> None:
    """Refuse values that lack a parameter without a default.

    Raises:
        UserError: A value is missing; the message has the names and types of all that are.
    """
    missing = [f"{name} ({spec.type})" for name, spec in declared.items() if spec.is_required and name not in values]
    if missing:
        raise UserError(f"no value for {', '.join(missing)}; give each one, for example by --parameter NAME=VALUE")


def complete(declared: Declared, values: Mapping[str, Any]) -> JsonObject:
    """Return a value for every parameter: the given one, the default, or None for an optional one without either.

    Raises:
        UserError: A value is missing, of another type or not one of the allowed ones, or a name is unknown.
    """
    held = convert_all(declared, values)
    require_all(declared, held)
    return {name: held[name] if name in held else _default(name, spec) for name, spec in declared.items()}


def restore_integers(value: Any) -> Any:
    """Return the value with the integral floats in it turned back into integers, at any depth; -0.0 stays a float."""

    def restored(number: Any) -> Any:
        is_integral = isinstance(number, float) and number.is_integer() and abs(number) <= MAX_EXACT
        return int(number) if is_integral and (number or math.copysign(1, number) > 0) else number

    return changed(value, restored)


def convert(value: Any, kind: ParameterType) -> Any:
    """Return a value passed between steps, converted to its type; text that is a number is read as one.

    Integers beyond 2**53 are rounded as on Vertex AI.

    Raises:
        ValueError: The value is not of the type; the message shows what was found.
    """
    exact = _exact(value, kind)
    try:
        doubles = as_doubles(exact)
    except OverflowError:
        raise ValueError(f"found {quote(value)}, which is too large for a double") from None
    return int(doubles) if kind is ParameterType.NUMBER_INTEGER and doubles is not None else doubles


def _exact(value: Any, kind: ParameterType) -> Any:
    if value is None or kind in (ParameterType.TASK_FINAL_STATUS, ParameterType.TASK_CONFIG):
        return value
    if kind in (ParameterType.NUMBER_INTEGER, ParameterType.NUMBER_DOUBLE):
        return _number(value, kind)
    expected = _PYTHON_TYPES[kind]
    if value in ([], {}) and expected in (list, dict):
        return expected()  # kfp compiles an empty default of either kind for both types
    # A Dict parameter may be given a list and the other way round: kfp maps several Python types to STRUCT.
    if not isinstance(value, expected) and {type(value), expected} != {list, dict}:
        raise ValueError(f"found {quote(value)}")
    return restore_integers(value)


def _number(value: Any, kind: ParameterType) -> int | float:
    wrong = ValueError(f"found {quote(value)}")
    try:
        number = parse_json(value, "value") if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise wrong
    except OverflowError:
        raise ValueError(f"found {quote(value)}, which is too large for a double") from None
    except ValueError:
        raise wrong from None
    if kind is ParameterType.NUMBER_DOUBLE:
        return float(number)
    if int(number) != number:
        raise wrong
    return int(number)


def _declaration(name: str, declared: Declared) -> ParameterSpec:
    if name not in declared:
        known = ", ".join(sorted(declared)) or "none"
        raise UserError(f"the pipeline has no parameter {name!r}{hint(name, declared) or f'; it has {known}'}")
    return declared[name]


def hint(name: str, declared: Declared) -> str:
    """Return the new name of a parameter, given in its description as "(formerly NAME)", or the nearest name."""
    renamed = [each for each, spec in declared.items() if f"(formerly {name})" in spec.description]
    return f"; it is named {renamed[0]} now" if renamed else did_you_mean(name, declared)


def _from_file(path: str | Path) -> JsonObject:
    documents = read_all(path, only_json_values=True)
    if len(documents) > 1:
        raise UserError(f"{display(path)} has {len(documents)} YAML documents; expected one with names and values")
    values = documents[0] if documents and documents[0] is not None else {}
    if not isinstance(values, dict):
        raise UserError(f"{display(path)} has {quote(values)}; expected an object of parameter names and values")
    return {str(name): value for name, value in values.items()}


def from_text(text: str, kind: ParameterType) -> Any:
    """Return the value that a text on the command line or in a form means; `convert_all` checks it."""
    if kind is ParameterType.STRING:
        return text
    try:
        return parse_json(text.lower() if kind is ParameterType.BOOLEAN else text, "value")
    except UserError:
        return text  # `_convert_each` refuses it, with its type


def _default(name: str, spec: ParameterSpec) -> Any:
    return None if spec.default is None else _convert(name, spec.default, spec)


def _convert_each(name: str, value: Any, spec: ParameterSpec) -> Any:
    # Between steps text may stand for a number and an object for a list; a user means neither.
    is_number = spec.type in (ParameterType.NUMBER_INTEGER, ParameterType.NUMBER_DOUBLE)
    is_empty = value in ([], {}) and spec.type in (ParameterType.LIST, ParameterType.STRUCT)
    if not is_empty and not isinstance(value, (int, float) if is_number else _PYTHON_TYPES.get(spec.type, object)):
        raise _wrong_type(name, value, spec)
    return _convert(name, value, spec)


def _convert(name: str, value: Any, spec: ParameterSpec) -> Any:
    try:
        json.dumps(value)  # a caller's value may be anything
        convert(value, spec.type)
        result = _exact(value, spec.type)
    except (TypeError, ValueError):
        raise _wrong_type(name, value, spec) from None
    if spec.literals and result not in spec.literals:
        allowed = ", ".join(map(str, spec.literals))
        raise WrongValue(name, quote(value), f"one of {allowed}")
    return result


def _wrong_type(name: str, value: Any, spec: ParameterSpec) -> UserError:
    example = EXAMPLES.get(spec.type, "null")
    return WrongValue(name, quote(value), f"{spec.type}, such as {example}")
