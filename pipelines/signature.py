"""The signature of a pipeline, from which kfp reads the names, types, defaults and descriptions of its parameters."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trainer.settings import limits


def declare(
    own: Callable[..., None], fields: Iterable[dataclasses.Field[Any]], defaults: Mapping[str, Any]
) -> Callable[[Callable[[dict[str, Any]], None]], Callable[..., None]]:
    """Return a decorator for a graph that takes its parameters by name, as one mapping.

    Args:
        own: Its signature and docstring declare the first parameters.
        fields: The others: fields of dataclasses with a help text in their metadata, and perhaps a range, which the
            console reads in the description.
        defaults: Defaults that replace the fields' own.
    """
    others = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=defaults.get(field.name, field.default),
            annotation=field.type,
        )
        for field in fields
    ]
    signature = inspect.Signature([*inspect.signature(own).parameters.values(), *others])
    descriptions = [f"    {field.name}: {_description(field.metadata)}" for field in fields]

    def decorate(graph: Callable[[dict[str, Any]], None]) -> Callable[..., None]:
        def build(*channels: Any) -> None:
            graph(dict(zip(signature.parameters, channels, strict=True)))

        build.__signature__ = signature  # type: ignore[attr-defined]
        build.__doc__ = "\n".join([inspect.getdoc(own) or "", *descriptions])
        return build

    return decorate


def _description(metadata: Mapping[str, Any]) -> str:
    text: str = metadata["help"]
    ends = limits(metadata.get("kind"))
    return f"{text.removesuffix('.')} ({ends})." if ends else text
