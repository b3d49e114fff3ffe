"""The grammar of a container's arguments: Concat and IfPresent structures, and JSON with placeholders in it.

Google's launchers take their job as `--payload`: JSON in a string, in which the placeholder of a list or a number is
not in quotes, e.g. `{"worker_pool_specs": {{$.inputs.parameters['pools']}}}`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex._base.userinput.spelling import quote

PLACEHOLDER = re.compile(r"\{\{\$((?:[^{}]|\}(?!\})|\{(?!\{\$))*)\}\}")
"""A placeholder without an end reaches at most to the next one, so that a text with many is read in a short time."""
INPUT_PARAMETER = re.compile(r"\{\{\$\.inputs\.parameters\['([^']+)'\]\}\}")
_INPUT_NAME = re.compile(r'"InputName":\s*"([^"]*)"')
_STRUCTURES = ('{"Concat":', '{"IfPresent":')


def expand(arguments: Sequence[str], present: set[str]) -> list[str]:
    """Flatten the Concat and IfPresent structures of a command to plain templates.

    Args:
        arguments: The words; a structure is JSON in a word.
        present: Names of the inputs that have a value.

    Raises:
        UserError: A structure is not one.
    """
    result: list[str] = []
    for argument in arguments:
        if argument.startswith(_STRUCTURES):
            result += _expand(parse_json(argument, "the argument"), present)
        else:
            result.append(argument)
    return result


def mentioned_inputs(arguments: Sequence[str]) -> set[str]:
    """Return the names of the inputs that a command's IfPresent structures test."""
    return {name for argument in arguments for name in _INPUT_NAME.findall(argument)}


def pieces(template: str) -> Iterator[tuple[str, str | None, bool]]:
    """Yield (text, placeholder after it, whether that is inside a JSON string) for JSON with placeholders in it.

    A placeholder is given without `{{$` and `}}`; after the last one comes None.
    """
    position, is_in_string = 0, False
    for match in PLACEHOLDER.finditer(template):
        text = template[position : match.start()]
        is_in_string = _ends_in_string(text, is_in_string)
        yield text, match[1], is_in_string
        position = match.end()
    yield template[position:], None, is_in_string


def decode(template: str) -> Any:
    """Return the value of JSON with placeholders in it; one outside of strings becomes a string of its own.

    Raises:
        ValueError: It is not JSON.
        RecursionError: It is nested too deeply.
    """
    parts: list[str] = []
    for text, placeholder, is_in_string in pieces(template):
        parts.append(text)
        if placeholder is not None:
            word = "{{$" + placeholder + "}}"
            parts.append(word if is_in_string else json.dumps(word))
    # The launchers read with strict=False: line feeds inside strings are accepted.
    return json.loads("".join(parts), strict=False)


def without_empty(value: Any) -> Any:
    """Drop what the launchers do not send: fields with an empty value, at any depth, and empty objects in lists.

    After `recursive_remove_empty` of google-cloud-pipeline-components 2.22: inside lists, plain values stay even when
    empty; in objects, `0`, `false` and `''` are dropped as well.
    """
    if isinstance(value, dict):
        cleaned = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item}
    if isinstance(value, list):
        cleaned_items = [without_empty(item) for item in value]
        return [item for item in cleaned_items if isinstance(item, int | float | str) or item]
    return value


def _expand(node: Any, present: set[str]) -> list[str]:
    if isinstance(node, str):
        return [node]
    if isinstance(node, list):
        return [text for item in node for text in _expand(item, present)]
    if isinstance(node, dict) and isinstance(node.get("Concat"), list):
        return ["".join(_expand(node["Concat"], present))]
    if isinstance(node, dict) and isinstance(node.get("IfPresent"), dict) and "InputName" in node["IfPresent"]:
        condition = node["IfPresent"]
        branch = condition.get("Then") if condition["InputName"] in present else condition.get("Else")
        return _expand(branch, present) if branch is not None else []
    raise UserError(f"{quote(node, 80)} is neither a Concat nor an IfPresent placeholder")


def _ends_in_string(text: str, is_in_string: bool) -> bool:
    is_escaped = False
    for character in text:
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = is_in_string
        elif character == '"':
            is_in_string = not is_in_string
    return is_in_string
