"""Decoding YAML that others wrote: only what JSON could say too, without aliases, and with one-line errors."""

import json
from typing import Any

import yaml

from userinput.errors import UserError

MAX_DEPTH = 200
"""Levels of nesting; compiled pipelines have about 15. The C parser has no guard of its own."""

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> list[Any]:
    """The documents of a text.

    Raises:
        UserError: with line and column.
    """
    try:
        check_events(text)
        documents = list(yaml.load_all(text, Loader=LOADER))
        # Dates, sets and bytes are YAML, but no values of a pipeline.
        json.dumps(documents, allow_nan=False)
        return documents
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UserError(f"broken YAML{place}: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise UserError(f"broken YAML: {' '.join(str(error).split())}") from None


def place_of(event: yaml.Event) -> str:
    """Line and column of an event."""
    mark = event.start_mark
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"


def check_events(text: str) -> None:
    """Refuses what would unfold or nest without bound, before anything is built from it.

    Raises:
        UserError: an alias (kfp writes none), or too many levels.
    """
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise UserError(f"{place_of(event)}: YAML aliases are not accepted")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise UserError(f"{place_of(event)}: nested too deep, more than {MAX_DEPTH} levels")
