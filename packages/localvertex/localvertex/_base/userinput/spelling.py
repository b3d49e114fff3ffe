"""Names and values in messages: snake_case and camelCase, the nearest valid name, quoting and lists."""

import re
from collections.abc import Iterable
from functools import lru_cache

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


@lru_cache(maxsize=4096)
def snake(key: str) -> str:
    """Return workerPoolSpecs as worker_pool_specs; snake_case stays as it is."""
    return _HUMP.sub(lambda hump: "_" + hump.group(1).lower(), key)


def camel(key: str) -> str:
    """Return worker_pool_specs as workerPoolSpecs."""
    head, *rest = key.split("_")
    return head + "".join(part.capitalize() for part in rest)


@lru_cache(maxsize=4096)
def _closest(word: str, names: tuple[str, ...], number: int) -> tuple[str, ...]:
    from difflib import get_close_matches  # difflib costs 3 ms, and only an error needs it

    folded = {_fold(name): name for name in names}
    return tuple(folded[match] for match in get_close_matches(_fold(word)[:200], list(folded), n=number, cutoff=0.5))


def closest(word: str, names: Iterable[str], number: int = 1) -> tuple[str, ...]:
    """Return up to `number` names like the word, the nearest first; case, "-" and "_" are ignored."""
    return _closest(word, tuple(names), number)


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return "; did you mean X?", or an empty text where no name is near."""
    match = closest(word, names)
    return f"; did you mean {match[0]}?" if match else ""


def _fold(name: str) -> str:
    return name.casefold().replace("-", "_")


def quote(value: object, limit: int = 60) -> str:
    """Return a value for a one-line message, cut to `limit` characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = f"<{type(value).__name__} too large to show>"  # an integer of more than 4300 digits, or deep nesting
    return text if len(text) <= limit else text[: limit - 3] + "..."


def on_one_line(text: object, limit: int = 600) -> str:
    """Return a text without line breaks and repeated blanks, cut to `limit` characters."""
    return " ".join(str(text).split())[:limit]


def join_or(names: Iterable[object], last: str = "or") -> str:
    """Return "a, b or c"."""
    texts = [str(name) for name in names]
    return f" {last} ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
