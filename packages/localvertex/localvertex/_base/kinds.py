"""JSON values that users write, checked against what is allowed: a wrong one is refused by its path.

A kind is `bool`, `str`, `dict` (any object), a range of integers, a `Number`, a `Text`, a tuple of texts to choose
from, a list `[kind]`, an object `{str: kind}` with any names or `{"key": kind}` with some of these keys, `Classes`, or
`Either` of several kinds.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import did_you_mean, join_or, quote


@dataclasses.dataclass(frozen=True, kw_only=True)
class Number:
    """A finite number within limits."""

    lowest: float
    highest: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Text:
    """A text that has another form in the program."""

    convert: Callable[[str], Any]
    """Returns this form, or raises a `UserError`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Classes:
    """An object {class_name, config}, as Keras writes its own."""

    keys: Mapping[str, str]
    """Class -> the keys of its config, separated by blanks."""
    kinds: Mapping[str, Any]
    """Keys, separated by blanks -> their kind."""
    other: Any
    """Kind of all other keys."""
    common: str = ""
    """Keys of every class."""
    required: str = ""
    """Keys that may not be left out where a class has them."""
    needs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Key -> the key without which it would be ignored."""

    def config(self, name: str) -> JsonObject:
        """Return key -> kind of the config of a class."""
        kinds = {key: kind for keys, kind in self.kinds.items() for key in keys.split()}
        return {key: kinds.get(key, self.other) for key in f"{self.keys[name]} {self.common}".split()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Either:
    """The first of several kinds that has the value's JSON type."""

    kinds: Sequence[Any]


def check(path: str, value: Any, kind: Any) -> Any:
    """Return a value in the types of its kind, for example 1 as 1.0 where any number is allowed.

    Args:
        path: Path of the value, which begins the messages.
        value: The value, as JSON has it.
        kind: The allowed kind, see above.

    Raises:
        UserError: The value is of another kind, a key is unknown or missing, or a class is not allowed.
    """
    if isinstance(kind, Either):
        fitting = [each for each in kind.kinds if isinstance(value, _json_type(each))]
        if fitting:
            return check(path, value, fitting[0])
    elif isinstance(kind, Number):
        # Compared as it is, because a large integer does not fit into a float.
        if type(value) in (int, float) and kind.lowest <= value <= kind.highest:
            return float(value)
    elif isinstance(kind, range | tuple):
        if type(value) is (int if isinstance(kind, range) else str) and value in kind:
            return value
    elif isinstance(value, _json_type(kind)):
        return _parts(path, value, kind)
    raise UserError(f"{path} is {quote(value)}; expected {_describe(kind)}")


def _parts(path: str, value: Any, kind: Any) -> Any:
    """Check the parts of a value of the right type."""
    if isinstance(kind, Text):
        return kind.convert(value)
    if isinstance(kind, list):
        return [check(f"{path}[{index}]", each, kind[0]) for index, each in enumerate(value)]
    if isinstance(kind, Classes):
        _check_keys(path, value, ("class_name", "config"))
        name = check(f"{path}.class_name", value.get("class_name"), tuple(kind.keys))
        config = check(f"{path} {name}", value.get("config", {}), kind.config(name))
        if missing := [key for key in kind.required.split() if key in kind.config(name) and key not in config]:
            raise UserError(f"{path} {name} has no {missing[0]}; give it")
        for key, needed in kind.needs.items():
            if key in config and not config.get(needed):
                raise UserError(f"{path} {name} has {key} without {needed}, so it has no effect; give both")
        return {"class_name": name, "config": config}
    if isinstance(kind, dict):
        any_name = kind.get(str)
        if any_name is None:
            _check_keys(path, value, tuple(kind))
        names = {key: key if key.isprintable() else quote(key) for key in value}
        return {key: check(f"{path}.{names[key]}", each, any_name or kind[key]) for key, each in value.items()}
    return value


def _check_keys(path: str, value: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in value:
        if key not in known:
            hint = did_you_mean(key, known) or f"; expected some of: {', '.join(known)}"
            raise UserError(f"{path} has the unknown key {quote(key)}{hint}")


def _json_type(kind: Any) -> Any:
    if isinstance(kind, type):
        return kind
    if isinstance(kind, Number | range):
        return int | float
    return str if isinstance(kind, tuple | Text) else list if isinstance(kind, list) else dict


def _describe(kind: Any) -> str:
    if isinstance(kind, Either):
        return join_or(map(_describe, kind.kinds))
    if isinstance(kind, Number):
        return f"a number from {kind.lowest:g} to {kind.highest:g}"
    if isinstance(kind, range):
        return f"a whole number from {kind[0]} to {kind[-1]}"
    if isinstance(kind, tuple):
        return f"one of: {', '.join(kind)}"
    names = {bool: "true or false", str: "a text", list: "a list", dict: "an object"}
    return names[_json_type(kind)] + " {class_name, config}" * isinstance(kind, Classes)
