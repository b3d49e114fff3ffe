"""Changes to the signature of a pipeline, before kfp reads it."""

import inspect
from collections.abc import Callable
from typing import Any


def drop(graph: Callable[..., Any], name: str) -> None:
    """Remove a parameter: kfp reads the signature, so that it does not become a field of the console's form."""
    signature = inspect.signature(graph)
    graph.__signature__ = signature.replace(parameters=[p for p in signature.parameters.values() if p.name != name])  # type: ignore[attr-defined]


def require(graph: Callable[..., Any], name: str) -> None:
    """Remove the default of a parameter, so that the console and `submit` ask for a value."""
    signature = inspect.signature(graph)
    kept = {"kind": inspect.Parameter.KEYWORD_ONLY, "default": inspect.Parameter.empty}
    changed = [p.replace(**kept) if p.name == name else p for p in signature.parameters.values()]  # type: ignore[arg-type]
    graph.__signature__ = signature.replace(parameters=changed)  # type: ignore[attr-defined]
