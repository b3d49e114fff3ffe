"""The one way to declare a setting: a dataclass's field with its help text, its kind and its default, and their check.

A kind is one of `localvertex._base.kinds`, for example a range of integers, or a tuple of texts to choose from.
"""

import argparse
import contextlib
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from localvertex._base import kinds
from localvertex._base.kinds import Number

T = TypeVar("T")

COUNT, POSITIVE = range(10**6), range(1, 10**6)
FRACTION, BELOW_ONE = Number(lowest=0, highest=1), Number(lowest=0, highest=0.999999)
NUMBER = Number(lowest=-math.inf, highest=math.inf)


def setting(help_text: str, kind: Any = None, *, is_later: bool = False, **options: Any) -> Any:
    """Return a field.

    Args:
        help_text: Description for command lines, settings files and the descriptions of pipelines.
        kind: The values that it may have; None: the dataclass itself checks it.
        is_later: Whether earlier runs did not have it, so that its default does not change the identity of a run.
        **options: Those of `dataclasses.field`.
    """
    return dataclasses.field(metadata={"help": help_text, "kind": kind, "is_later": is_later}, **options)


def flag(name: str) -> str:
    """Return the flag of a setting."""
    return f"--{name.replace('_', '-')}"


def add_flags(group: argparse._ArgumentGroup, settings: Any) -> None:
    """Give a group of a command line one flag per field of a dataclass of settings."""
    for field in dataclasses.fields(settings):
        choices = field.metadata["kind"] if isinstance(field.metadata["kind"], tuple) else None
        # Annotations would be strings with `from __future__ import annotations`.
        assert isinstance(field.type, type)  # noqa: S101 - for the type checker
        group.add_argument(
            flag(field.name),
            type=field.type,
            choices=choices,
            default=field.default,
            metavar=None if choices else field.type.__name__.upper(),
            help=f"{field.metadata['help'].replace('%', '%%')} [%(default)s]",
        )


def check_all(settings: Any, prefix: str = "") -> None:
    """Check each setting of a frozen dataclass, and give it the type of its kind.

    Args:
        settings: The instance.
        prefix: Begins the names in messages.

    Raises:
        UserError: A value is not one of its kind.
    """
    for field in dataclasses.fields(settings):
        if (kind := field.metadata.get("kind")) is not None:
            value = check(f"{prefix}{field.name}", getattr(settings, field.name), kind)
            object.__setattr__(settings, field.name, value)


def check(name: str, value: Any, kind: Any) -> Any:
    """Return a value in the type of its kind. In kfp's structures, a number may be a text, and 2 may be 2.0.

    Raises:
        UserError: It is not one of this kind.
    """
    if isinstance(kind, range | Number):
        with contextlib.suppress(ValueError):
            value = float(value) if isinstance(value, str) else value
        if isinstance(kind, range) and isinstance(value, float) and value.is_integer():
            value = int(value)
    return kinds.check(name, value, kind)


def limits(kind: Any) -> str:
    """Return the lowest and the highest number of a kind, in words; empty for other kinds."""
    if isinstance(kind, range):
        return f"{kind[0]} to {kind[-1]}"
    return f"{kind.lowest:g} to {kind.highest:g}" if isinstance(kind, Number) else ""


def from_values(kind: Callable[..., T], values: Mapping[str, Any]) -> T:
    """Return a dataclass of a kind with the values for which it has a field."""
    return kind(**{name: values[name] for name in inspect.signature(kind).parameters if name in values})
