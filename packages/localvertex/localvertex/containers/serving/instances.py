"""The lines of a batch prediction as the instances that a model gets."""

import json
from dataclasses import dataclass
from typing import Any

from localvertex._base.json_object import JsonObject


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the input."""

    instance: Any
    output: JsonObject
    """Identity in the output: the line itself, or its key."""


class BadLine(Exception):
    """A line that does not become an instance."""

    def __init__(self, content: Any, reason: str) -> None:
        super().__init__(reason)
        self.output = {"instance": content}


def read(line: bytes, key_field: str) -> Line:
    """Read a line; a key field, if there is one, is moved from the instance to the output.

    Raises:
        BadLine: The line is not JSON, or not an object with the key field.
    """
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        text = line.decode(errors="replace").rstrip("\r\n")
        raise BadLine(text, f"the line is not JSON: {error}") from None
    if not key_field:
        return Line(instance=content, output={"instance": content})
    if not isinstance(content, dict):
        raise BadLine(content, f"expected a JSON object, found {type(content).__name__}")
    if key_field not in content:
        raise BadLine(content, f"the key field {key_field!r} is missing")
    kept = {name: value for name, value in content.items() if name != key_field}
    return Line(instance=kept, output={"key": content[key_field]})
