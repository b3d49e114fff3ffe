"""The templates of all pages. The content of a run is not trusted: every value is escaped."""

import base64
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

_FOLDER = Path(__file__).parent

_STYLE, _SCRIPT = "run.css", "run.js"

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, characters that reverse the text after them, and halves of characters."""

_AFTER_SEPARATOR = re.compile(r"(?<=[/\-_.:@=,])(?=[^/\-_.:@=,])")

_MAX_CHARACTERS = 1000
"""Of one value; the record has all of it."""


def render(template: str, **values: Any) -> str:
    """Render a template of this folder with the style and the script of all pages."""
    return str(_environment().get_template(template).render(style=_read(_STYLE), script=_read(_SCRIPT), **values))


def policy() -> str:
    """Return the content security policy: only the style and the script of the pages, and nothing from elsewhere."""
    digest = base64.b64encode(hashlib.sha256(_read(_SCRIPT).encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; font-src data:; base-uri 'none'; form-action 'none'"
    )


def visible(value: Any) -> Any:
    """Return a text with escape sequences for the characters that would hide or reorder it; all else unchanged."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
    return value


def _breakable(text: str) -> Markup:
    """Return an id or a path that may be broken after its separators."""
    return Markup("<wbr>").join(_AFTER_SEPARATOR.split(visible(str(text))))


def as_text(value: Any) -> str:
    """Return a value of a record as text: a text as it is, all else as JSON, and only the beginning of a long one."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    left = len(text) - _MAX_CHARACTERS
    return text if left <= 0 else f"{text[:_MAX_CHARACTERS]} ... and {left:,} more characters"


def _file_link(path: str) -> str:
    """Return a link to a file in the folder of the page; its name may look like an address."""
    return quote(f"./{path}", errors="replace")


@cache
def _environment() -> Any:
    # Imported late: a run that is refused needs no template engine.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"wrapped": _breakable, "shown": as_text, "file": _file_link}
    environment.globals["policy"] = policy()
    return environment


@cache
def _read(name: str) -> Markup:
    return Markup((_FOLDER / name).read_text())  # noqa: S704 - a file of this package
