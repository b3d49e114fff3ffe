"""Messages of one line, and values and other programs' messages as part of them."""

import contextlib
import sys
from collections.abc import Sequence

_LONGEST_MESSAGE = 1000
"""Characters; a value that users gave may have any number."""


def quote(value: object, limit: int = 60) -> str:
    """Return a value for a one-line message, cut to `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def some(names: Sequence[str], limit: int) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def on_one_line(text: object, limit: int) -> str:
    """Return a text without line breaks and repeated blanks, cut to `limit` characters."""
    return " ".join(str(text).split())[:limit]


def one_line(message: str) -> str:
    """Return a message with its control characters escaped, and without its middle where a value makes it long."""
    text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in message)
    half = _LONGEST_MESSAGE // 2
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"


def report(message: str) -> None:
    """Print a line about the run, whether or not its reader still runs."""
    with contextlib.suppress(OSError):
        print(one_line(f"exact_resume: {message}"), file=sys.stderr, flush=True)
