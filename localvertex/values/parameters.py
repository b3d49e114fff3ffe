"""The values that a user gives to a pipeline's parameters."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compiled.load import read_text
from compiled.spec import ParameterSpec, ParameterType
from localvertex.values.json_text import parse_json
from localvertex.values.values import convert, shown
from localvertex.values.yaml_text import parse_yaml
from userinput.errors import UserError


def from_options(options: list[str], declared: Mapping[str, ParameterSpec]) -> dict[str, Any]:
    """Values of `NAME=VALUE` options, read by the declared type; a value may hold further '=' signs.

    Raises:
        UserError: no '=', an unknown name, or a value of another type.
    """
    values: dict[str, Any] = {}
    for option in options:
        name, separator, text = option.partition("=")
        if not separator:
            raise UserError(f"--parameter {option}: expected NAME=VALUE, for example --parameter epochs=3")
        check_name(name, declared)
        values[name] = from_text(name, text, declared[name].type)
    return values


def from_text(name: str, text: str, kind: ParameterType) -> Any:
    """One value: STRING as it is, everything else as JSON."""
    if kind is ParameterType.STRING:
        return text
    try:
        value = parse_json(text.lower() if kind is ParameterType.BOOLEAN else text, name)
    except UserError:
        example = {"LIST": '["a", "b"]', "STRUCT": '{"a": 1}', "BOOLEAN": "true", "NUMBER_INTEGER": "3"}.get(
            kind, "0.5"
        )
        raise UserError(f"parameter {name!r}: expected {kind} such as {example}, found {shown(text)}") from None
    return checked(name, value, kind)


def from_file(path: Path, declared: Mapping[str, ParameterSpec]) -> dict[str, Any]:
    """Values of a JSON or YAML file that holds one object.

    Raises:
        UserError: the file cannot be read, an unknown name, or a value of another type.
    """
    text = read_text(path, advice="give a JSON or YAML file with the parameters")
    try:
        documents = [parse_json(text, "")] if path.suffix == ".json" else parse_yaml(text)
    except UserError as error:
        raise UserError(f"{path}: {str(error).removeprefix(': ')}") from None
    values = documents[0] if len(documents) == 1 else None if not documents else documents
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected an object of parameter names and values, found {type(values).__name__}")
    for name in values:
        check_name(str(name), declared)
    return {name: checked(name, value, declared[name].type) for name, value in values.items() if value is not None}


def checked(name: str, value: Any, kind: ParameterType) -> Any:
    """The value as its type has it.

    Raises:
        UserError: it is of another type.
    """
    if value is None:
        return None
    is_wrong_number = kind in (ParameterType.NUMBER_INTEGER, ParameterType.NUMBER_DOUBLE) and isinstance(value, str)
    try:
        json.dumps(value)
        if not is_wrong_number:
            return convert(value, kind)
    except (ValueError, TypeError):
        pass
    found = shown(value) if isinstance(value, str | int | float | list | dict | bool) else type(value).__name__
    raise UserError(f"parameter {name!r}: expected {kind}, found {found}") from None


def check_name(name: str, declared: Mapping[str, ParameterSpec]) -> None:
    """Refuses a name that the pipeline does not have.

    Raises:
        UserError: with the nearest name and the list of all.
    """
    if name in declared:
        return
    near = difflib.get_close_matches(name, declared, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    known = ", ".join(sorted(declared)) or "none"
    raise UserError(f"the pipeline has no parameter {name!r}; {hint}it has: {known}")


def complete(values: Mapping[str, Any], declared: Mapping[str, ParameterSpec]) -> dict[str, Any]:
    """The values with the pipeline's defaults filled in; None for optional ones without a value.

    Raises:
        UserError: names every required parameter that has no value.
    """
    given = {name: value for name, value in values.items() if value is not None}
    missing = [name for name, each in declared.items() if each.is_required and name not in given]
    if missing:
        names = ", ".join(f"{name} ({declared[name].type})" for name in missing)
        raise UserError(
            f"these parameters have no default and need a value: {names}; give them with --parameter NAME=VALUE"
        )
    result = {name: given.get(name, each.default) for name, each in declared.items()}
    for name, each in declared.items():
        if each.literals and result[name] is not None and result[name] not in each.literals:
            raise UserError(f"parameter {name!r}: expected one of {list(each.literals)}, found {shown(result[name])}")
    return {
        name: value if value is None else checked(name, value, declared[name].type) for name, value in result.items()
    }
