"""The lines of a batch prediction as the instances that a model gets (InstanceConfig of the API)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localvertex_base.userinput.errors import UserError

_TYPES = ("", "object", "array")


@dataclass(frozen=True, kw_only=True)
class InstanceConfig:
    """How lines become instances.

    Raises:
        UserError: The fields exclude each other, or the type is unknown.
    """

    type: str = ""
    """object or array; empty: each line as it is."""
    key_field: str = ""
    included_fields: tuple[str, ...] = ()
    excluded_fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what the service refuses."""
        if self.type not in _TYPES:
            raise UserError(f"instance_type {self.type[:40]!r}: expected object or array")
        if self.included_fields and self.excluded_fields:
            raise UserError("included_fields and excluded_fields exclude each other; leave one out")

    @classmethod
    def of_message(cls, fields: Mapping[str, Any]) -> "InstanceConfig":
        """Read the message, whose fields have been resolved.

        Raises:
            UserError: See the class.
        """
        return cls(
            type=str(fields.get("instance_type", "")),
            key_field=str(fields.get("key_field", "")),
            included_fields=tuple(map(str, fields.get("included_fields") or ())),
            excluded_fields=tuple(map(str, fields.get("excluded_fields") or ())),
        )

    def read(self, line: bytes) -> "Line":
        """Read a line.

        Raises:
            BadLine: It is not JSON, or not what the config needs.
        """
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            text = line.decode(errors="replace").rstrip("\r\n")
            raise BadLine(text, f"the line is not JSON: {error}") from None
        has_fields = bool(self.key_field or self.included_fields or self.excluded_fields or self.type == "object")
        if has_fields and not isinstance(content, dict):
            raise BadLine(content, f"expected a JSON object, found {type(content).__name__}")
        if self.key_field and self.key_field not in content:
            raise BadLine(content, f"the key field {self.key_field!r} is missing")
        return Line(
            instance=self._instance(content),
            output={"key": content[self.key_field]} if self.key_field else {"instance": content},
        )

    def _instance(self, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        left_out = {self.key_field, *self.excluded_fields}
        names = self.included_fields or tuple(content)
        missing = [name for name in self.included_fields if name not in content]
        if missing:
            raise BadLine(content, f"the included field {missing[0]!r} is missing")
        kept = {name: content[name] for name in names if name not in left_out}
        if self.type != "array":
            return kept
        if not self.included_fields:
            raise BadLine(content, "an object becomes an array only with included_fields, which give its order")
        return [*kept.values()]


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the input."""

    instance: Any
    output: dict[str, Any]
    """Identity in the output: the line itself, or its key."""


class BadLine(Exception):
    """A line that does not become an instance."""

    def __init__(self, content: Any, reason: str) -> None:
        super().__init__(reason)
        self.output = {"instance": content}
