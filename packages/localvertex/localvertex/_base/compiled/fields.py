"""Reading of decoded JSON by name and type: what is wrong is noted with its path, and read as absent."""

import csv
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from localvertex._base.userinput.spelling import did_you_mean, quote


class Here(StrEnum):
    """Treatment of a field in a local run."""

    AS_ON_VERTEX = "as on Vertex AI"
    DIFFERENTLY = "differently"
    NO_EFFECT = "no effect"
    REFUSED = "refused"


class Treatment(NamedTuple):
    """One row of treatment.csv."""

    message: str
    """The message of the protocol, without its package, e.g. "PipelineTaskSpec.RetryPolicy"."""
    field: str
    """The name of the field in JSON."""
    here: Here
    how: str
    """The difference, or the reason of the refusal; may be empty."""


@cache
def treatments() -> dict[tuple[str, str], Treatment]:
    """Return the treatment of every field by message and field, in the order of the protocol."""
    with Path(__file__).with_name("treatment.csv").open(encoding="utf-8", newline="") as file:
        rows = [Treatment(row["message"], row["field"], Here(row["here"]), row["how"]) for row in csv.DictReader(file)]
    return {(row.message, row.field): row for row in rows}


T = TypeVar("T")

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
"""Names of components, tasks, parameters and artifacts; they become file names, so no slash and no dot."""
_LONGEST_KEY = 200
_NOT_IN_KEY = re.compile(r"[^A-Za-z0-9_-]")
_JSON_NAMES = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "an integer"}


def task_name(name: str) -> str:
    """Return the name of a task with "_" for what is safe only within text: it becomes a file name and an address.

    kfp 1.8 copies the name that an author gave a condition, for example "accuracy<50", into "condition-accuracy<50-3".
    """
    return name[:1] + _NOT_IN_KEY.sub("_", name[1:]) if name.isprintable() else name


class Fields:
    """One object of the file, and its path.

    Attributes:
        path: Path in the file, e.g. "root.dag"; empty for the whole document.
        problems: Errors, one line each; shared by all objects of a file.
    """

    def __init__(self, value: Any, message: str, problems: list[str], path: str = "") -> None:
        """Take an object of the file that is a message of the protocol; its fields are in treatment.csv."""
        self.path, self.problems = path, problems
        self._message, self._inner = message, list[Fields]()
        self._left = dict(value) if isinstance(value, Mapping) else {}
        self._known: list[str] = []
        if not isinstance(value, Mapping):
            self.note(f"expected an object, found {_show(value)}")

    def at(self, name: str) -> str:
        """Return the path of a field of this object."""
        return f"{self.path}.{name}" if self.path else name

    def note(self, problem: str, name: str = "") -> None:
        """Note a problem with this object, or with one of its fields."""
        path = self.at(name) if name else self.path or "top level"
        self.problems.append(f"{path}: {problem}")

    def has(self, name: str) -> bool:
        """Return whether the field is there and has not been taken yet."""
        return self._left.get(name) is not None

    def is_null(self, name: str) -> bool:
        """Return whether the field is there, as null."""
        return name in self._left and self._left[name] is None

    def any(self, name: str) -> Any:
        """Return the field's value of any type, None where it is absent."""
        self._known.append(name)
        return self._left.pop(name, None)

    def take(self, name: str, kind: type[T], default: T) -> T:
        """Return the field's value; `default` where it is absent or, which is a problem, of another type."""
        value = self.any(name)
        if value is None:
            return default
        if kind is int and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            self.note(f"expected {_JSON_NAMES[kind]}, found {_show(value)}", name)
            return default
        return value

    def required(self, name: str, kind: type[T]) -> T:
        """Return a field like `take`; it is a problem where it is absent or, as a string, empty."""
        if self._left.get(name) in (None, ""):
            self.note(f"the field {name!r} is missing or empty")
        return self.take(name, kind, kind())

    def strings(self, name: str) -> tuple[str, ...]:
        """Return a list of strings, empty where it is absent; an entry of another type becomes an empty string."""
        values = self.take(name, list, [])
        for index, value in enumerate(values):
            if not isinstance(value, str):
                self.note(f"expected a string, found {_show(value)}", f"{name}[{index}]")
        return tuple(value if isinstance(value, str) else "" for value in values)

    def object(self, name: str, message: str) -> "Fields":
        """Return a nested object, empty where it is absent."""
        return self._nested(self.take(name, dict, {}), message, name)

    def objects(self, name: str, message: str, key_of: Callable[[str], str] = str) -> "list[tuple[str, Fields]]":
        """Return the entries of a map from names to objects, with the names that `key_of` returns."""
        entries, keys = self.take(name, dict, {}), dict[str, str]()
        for each in entries:
            if not isinstance(each, str) or not _KEY.fullmatch(key_of(each)) or len(each) > _LONGEST_KEY:
                self.note(f"{quote(each, 120)} is not a usable name; expected letters, digits, '-' and '_'", name)
            elif (other := keys.setdefault(key := key_of(each), each)) != each:
                self.note(f"{other!r} and {each!r} have the same name here, {key!r}; rename one of them", name)
        return [(key_of(str(key)), self._nested(value, message, f"{name}.{key}")) for key, value in entries.items()]

    def required_object(self, name: str, message: str) -> "Fields":
        """Return a nested object; it is a problem where it is absent."""
        return self._nested(self.required(name, dict), message, name)

    def list_of_objects(self, name: str, message: str) -> "list[Fields]":
        """Return the objects of a list."""
        values = self.take(name, list, [])
        return [self._nested(value, message, f"{name}[{index}]") for index, value in enumerate(values)]

    def _nested(self, value: Any, message: str, name: str) -> "Fields":
        self._inner.append(Fields(value, message, self.problems, self.at(name)))
        return self._inner[-1]

    def finish(self) -> None:
        """Note the fields of this object, and of all in it, that were not taken: the refusal, or the nearest name."""
        for name, value in self._left.items():
            row = treatments().get((self._message, name))
            if row is not None and row.here is Here.REFUSED:
                # With its default value a field is absent, as in protobuf.
                if value:
                    self.note(row.how, name)
            elif row is None or row.here is not Here.NO_EFFECT:
                self.note(f"the field {quote(name)} is unknown{did_you_mean(str(name), self._known)}")
        for each in self._inner:
            each.finish()


def _show(value: Any) -> str:
    return _JSON_NAMES[type(value)] if isinstance(value, dict | list) else quote(value)
