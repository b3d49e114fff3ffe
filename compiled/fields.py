"""Strict reading of decoded JSON: every field is asked for by name and type, what is left over is refused."""

import difflib
import re
from typing import Any, TypeVar

from userinput.errors import UserError

T = TypeVar("T")

KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
"""Names of components, tasks, parameters and artifacts; they become file names, so no slash and no dot."""

JSON_NAMES = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "an integer"}


class Fields:
    """One object of the file, and where it stands."""

    def __init__(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise UserError(f"{place}: expected an object, found {describe(value)}")
        self._left = dict(value)
        self._known: list[str] = []
        self.place = place

    def at(self, name: str) -> str:
        """The place of a field of this object."""
        return f"{self.place}.{name}" if self.place else name

    def take(self, name: str, kind: type[T], default: T) -> T:
        """The field's value, `default` when the field is absent.

        Raises:
            UserError: the field has another type.
        """
        self._known.append(name)
        value = self._left.pop(name, None)
        if value is None:
            return default
        if kind is int and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise UserError(f"{self.at(name)}: expected {JSON_NAMES[kind]}, found {describe(value)}")
        return value

    def required(self, name: str, kind: type[T]) -> T:
        """Like `take`, for a field that has to be there and, as a string, must not be empty."""
        if self._left.get(name) in (None, ""):
            raise UserError(f"{self.place or 'top level'}: the field {name!r} is missing or empty")
        return self.take(name, kind, kind())

    def has(self, name: str) -> bool:
        """Whether the field is there (and has not been taken)."""
        return self._left.get(name) is not None

    def any(self, name: str) -> Any:
        """The field's value of whatever type, None when absent."""
        self._known.append(name)
        return self._left.pop(name, None)

    def strings(self, name: str) -> tuple[str, ...]:
        """A list of strings, empty when absent."""
        values = self.take(name, list, [])
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise UserError(f"{self.at(name)}[{index}]: expected a string, found {describe(value)}")
        return tuple(values)

    def object(self, name: str) -> "Fields":
        """A nested object, empty when absent."""
        return Fields(self.take(name, dict, {}), self.at(name))

    def items(self, name: str) -> list[tuple[str, Any, str]]:
        """Entries of a nested map: key, value, place. Keys are checked, they become file names."""
        entries = self.take(name, dict, {})
        for key in entries:
            if not isinstance(key, str) or not KEY.fullmatch(key) or len(key) > 200:
                raise UserError(f"{self.at(name)}: {key!r} is not a usable name; letters, digits, '-' and '_'")
        return [(key, value, f"{self.at(name)}.{key}") for key, value in entries.items()]

    def done(self) -> None:
        """Refuses the fields that nobody asked for.

        Raises:
            UserError: names the first unknown field and the nearest known one.
        """
        for name in self._left:
            near = difflib.get_close_matches(str(name), self._known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UserError(f"{self.place or 'top level'}: the field {name!r} is not known here{hint}")


def describe(value: Any, limit: int = 60) -> str:
    """A value as error messages show it: the kind of a list or an object, anything else shortened to the limit."""
    if isinstance(value, dict | list):
        return JSON_NAMES[type(value)]
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
