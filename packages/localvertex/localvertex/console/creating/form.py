"""The form of a pipeline's parameters, and the values that are written in it."""

import json
from collections.abc import Mapping
from typing import Any

from localvertex._base.compiled.parameters import EXAMPLES, ParameterSpec, ParameterType, convert_all, from_text, hint
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex.console.creating.source import Source
from localvertex.show.view.groups import documented_choices, documented_problem

Details = list[dict[str, str]]
"""Errors, each with the field of the form: `parameters.NAME` or the name of a setting."""

MAX_TEXT = 20_000
"""Characters of a description; a page with 5 MB of text does not answer for seconds."""
_JSON_TYPES = (ParameterType.LIST, ParameterType.STRUCT)


def parameters(source: Source) -> list[JsonObject]:
    """Return the fields for the parameters; a value is its text in the form, or None."""
    fields = []
    for name, spec in source.pipeline.root.input_parameters.items():
        earlier = source.parameters.get(name)
        fields.append(
            {
                "name": name,
                "type": str(spec.type),
                "description": spec.description[:MAX_TEXT],
                "default": _text_or_none(spec.default, spec.type),
                "is_required": spec.is_required,
                "literals": [as_text(each, spec.type) for each in spec.literals],
                "documented": documented_choices(spec),
                "example": EXAMPLES.get(spec.type, ""),
                "value": _text_or_none(earlier, spec.type) if earlier not in (None, spec.default) else None,
            }
        )
    return fields


def as_text(value: Any, kind: ParameterType) -> str:
    """Return a value as the form and the command line write it: a string as it is, everything else as JSON."""
    if kind is ParameterType.STRING and isinstance(value, str):
        return value
    # The SDK sends each number as a double.
    if kind is ParameterType.NUMBER_INTEGER and isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def _text_or_none(value: Any, kind: ParameterType) -> str | None:
    return None if value is None else as_text(value, kind)


def read_parameters(source: Source, texts: Mapping[str, Any]) -> tuple[JsonObject, Details]:
    """Return the values of the texts in the form, and what is wrong with them.

    For a PipelineJob, a parameter without a text gets its default, not the value that the file has.
    """
    declared, values, wrong = source.pipeline.root.input_parameters, JsonObject(), Details()
    for name, text in texts.items():
        try:
            values |= _value(name, text, declared)
        except UserError as error:
            wrong.append({"field": f"parameters.{name}", "message": error.text})
    for name, spec in declared.items():
        if name in texts:
            continue
        if spec.default is not None and name in source.pipeline.job.parameters:
            values[name] = spec.default
        if spec.is_required:
            message = f"required; expected {spec.type}, such as {EXAMPLES.get(spec.type, 'null')}"
            wrong.append({"field": f"parameters.{name}", "message": message})
    return values, wrong


def _value(name: str, text: Any, declared: Mapping[str, ParameterSpec]) -> JsonObject:
    """Return the value of one text.

    Raises:
        UserError: It is wrong.
    """
    if name not in declared:
        raise UserError(f"the pipeline has no parameter {name!r}{hint(name, declared)}")
    if not isinstance(text, str):
        raise UserError(f"expected text as in the form, found {type(text).__name__}")
    kind = declared[name].type
    value = parse_json(text, "the value") if kind in _JSON_TYPES else from_text(text, kind)
    if value is None:
        raise UserError(f"found null; expected {kind}, such as {EXAMPLES.get(kind, '')}")
    values = convert_all(declared, {name: value})
    if problem := documented_problem(declared[name], values[name]):
        raise UserError(problem)
    return values
