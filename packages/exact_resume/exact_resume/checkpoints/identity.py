"""The identity of a run: configuration, sampler and code, as plain values by their path."""

import dataclasses
import hashlib
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from exact_resume.errors import InputError
from exact_resume.sampler import Sampler
from exact_resume.text import quote


def of_run(
    steps: int, config: Mapping[str, Any], sampler: Sampler | None, code: Sequence[str | os.PathLike[str]]
) -> dict[str, Any]:
    """Return all that identifies a run except its state: field -> plain value."""
    found: dict[str, Any] = {"steps": steps}
    _flatten("config", config, found)
    if sampler:
        found |= {f"sampler.{name}": value for name, value in dataclasses.asdict(sampler).items()}
    for path in map(pathlib.Path, code):
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise InputError(
                f"code {str(path)!r} cannot be read ({error.strerror}); give files, e.g. __file__"
            ) from None
        # A folder may have another name on another machine.
        name = f"code.{path.name}"
        found[name] = f"{found[name]}, {digest}" if name in found else digest
    return found


def _flatten(path: str, value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, Mapping):
        for key, each in value.items():
            _flatten(f"{path}.{key}", each, found)
    elif isinstance(value, str | int | float | None) and (not isinstance(value, float) or math.isfinite(value)):
        found[path] = value
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            _flatten(f"{path}.{number}", each, found)
        found[f"{path}.length"] = len(value)
    else:
        raise InputError(
            f"{path} is {quote(value)}, a {type(value).__name__}; expected finite numbers, texts, lists and dicts"
        )
