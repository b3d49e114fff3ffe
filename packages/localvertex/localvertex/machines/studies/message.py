"""Fields of a message, read as Google's client library does: snake_case names, enums by name or number."""

import math
from enum import IntEnum
from typing import Any, TypeVar

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import did_you_mean, join_or, quote

Enumeration = TypeVar("Enumeration", bound=IntEnum)


_NOT_LOCAL = {
    **dict.fromkeys(
        (
            *("decay_curve_stopping_spec", "median_automated_stopping_spec", "convex_automated_stopping_spec"),
            *("observation_noise", "study_stopping_config"),
        ),
        "it does not run locally; remove it",
    ),
    "safety_config": "safe search does not run locally; remove it",
    "conditional_parameter_specs": "conditional parameters do not run locally; give all to each trial",
}
"""Field of the API -> why a study with it does not run here."""


class NotLocal(UserError):
    """Vertex AI takes this, and it does not run here."""


class Unadvised(UserError):
    """The API reference advises against this; it does not say that the service refuses it."""


class Message:
    """An object of a message; `path` names it in errors."""

    def __init__(self, value: Any, path: str, names: tuple[str, ...]) -> None:
        """Check that the value is an object with no other fields.

        Raises:
            UserError: It is not.
        """
        if not isinstance(value, dict):
            raise UserError(f"expected an object, found {quote(value)}", path=path)
        for name in value:
            if name in _NOT_LOCAL and value[name] != []:
                label = f" ({value['parameter_id']})" if "parameter_id" in value else ""
                raise NotLocal(_NOT_LOCAL[name], path=f"{path}.{name}{label}")
            if name not in (*names, *_NOT_LOCAL):
                raise UserError(f"unknown field {quote(name)}{did_you_mean(str(name), names)}", path=path)
        self.path, self._fields = path, value

    def has(self, name: str) -> bool:
        """Return whether the field is present."""
        return name in self._fields

    def name_of(self, field: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{field}"

    def value(self, field: str, default: Any) -> Any:
        """Return a field as it is."""
        return self._fields.get(field, default)

    def identifier(self, field: str) -> str:
        """Return a name without spaces."""
        value = self._fields.get(field)
        if not isinstance(value, str) or not value or any(each.isspace() for each in value):
            raise UserError(f"expected a name without spaces, found {quote(value)}", path=self.name_of(field))
        return value

    def number(self, field: str) -> float:
        """Return a finite number; 0 if the field is missing, as in the API."""
        return parse_number(self._fields.get(field, 0), self.name_of(field))

    def int64(self, field: str) -> int:
        """Return an integer, 0 by default; `serialize_parameters` of Google's components writes it as text."""
        value = self._fields.get(field, 0)
        if isinstance(value, str) and value.removeprefix("-").isdecimal():
            return int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise UserError(f"expected an integer, found {quote(value)}", path=self.name_of(field))
        return value

    def enumeration(self, field: str, kind: type[Enumeration]) -> Enumeration:
        """Return a member of an enumeration; member 0 by default."""
        value = self._fields.get(field, 0)
        found = [each for each in kind if value == each.name or (value == each.value and not isinstance(value, bool))]
        if not found:
            names = join_or(each.name for each in kind)
            raise UserError(f"expected {names}, found {quote(value)}", path=self.name_of(field))
        return found[0]

    def items(self, field: str) -> list[Any]:
        """Return a list, an empty one by default."""
        value = self._fields.get(field, [])
        if not isinstance(value, list):
            raise UserError(f"expected a list, found {quote(value)}", path=self.name_of(field))
        return value


def parse_number(value: Any, path: str) -> float:
    """Return a finite number.

    Raises:
        UserError: It is not one.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise wrong_number("a number", value, path)
    return value


def wrong_number(expected: str, value: Any, path: str) -> UserError:
    """Return the error for a value that is not a number; JSON of the REST API may have one in quotes."""
    is_quoted = isinstance(value, str) and value[-1:].isdecimal()
    return (Unadvised if is_quoted else UserError)(f"expected {expected}, found {quote(value)}", path=path)
