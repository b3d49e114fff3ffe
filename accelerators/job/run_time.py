"""A value that is only known when the pipeline runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, eq=False)
class AtRunTime:
    """Stands for a value that no file holds; rules leave it alone."""

    origin: str
    """Where it comes from, readable, e.g. "parameter 'machine_type', which has no default"."""
    producer: str = ""
    """Path in the file of the step that makes it, where a step does."""
    step_inputs: Mapping[str, Any] = field(default_factory=dict)
    """The inputs of that step by name, as far as they are known."""


def known(value: object) -> bool:
    """Return whether the value is there and not only known at run time."""
    return value is not None and not isinstance(value, AtRunTime)
