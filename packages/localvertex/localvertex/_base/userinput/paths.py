"""Paths as users write them: local ones and gs:// addresses; everything else is refused before it is used."""

import re
from pathlib import Path

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote

BUCKET_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/.*)?")
"""A bucket, with or without a path in it."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""The scheme of an address; a single letter is a drive of Windows."""
_MAX_BYTES = 2000
"""Linux takes 4,096 with the names of the files below it."""
_MAX_OBJECT_BYTES = 800
"""Cloud Storage takes 1,024, even with those names."""
_MAX_NAME_BYTES = 255
_MAX_SHOWN = 100


def check(name: str, path: str | Path, *, is_local: bool = False, expected: str = "") -> str:
    """Return the path if a program can use it.

    Args:
        name: The flag or parameter, which begins the message.
        path: The path as the user wrote it.
        is_local: Refuse gs:// as well.
        expected: Expectation in the message, where it is more than a path.

    Raises:
        UserError: It is blank, too long, not UTF-8, or of another scheme than gs://, or it names no bucket.
    """
    text = str(path)
    expected = expected or ("a local path" if is_local else "a local path or gs://BUCKET/FOLDER")
    if not text.strip():
        raise UserError(f"{name} is empty; expected {expected}")
    if (wrong := _wrong_character(text)) is not None:
        raise UserError(f"{name}={display(text)} has {wrong}, which no path may contain; expected {expected}")
    scheme = "gs" if text.startswith("gs:") else found[1] if (found := _SCHEME.match(text)) else ""
    if scheme == "gs" and not is_local:
        if not BUCKET_FOLDER.fullmatch(text):
            raise UserError(f"{name}={display(text)} names no bucket; expected gs://BUCKET/FOLDER")
    elif scheme:
        raise UserError(f"{name}={display(text)} is not supported ({scheme}:); expected {expected}")
    _check_length(name, text, max_bytes=_MAX_OBJECT_BYTES if scheme else _MAX_BYTES)
    return text


def display(text: str) -> str:
    """Return a path as messages show it: quoted, on one line, with its end where it is long."""
    return repr(text) if len(text) <= _MAX_SHOWN else f"{quote(text, _MAX_SHOWN)} ({len(text)} characters)"


def _wrong_character(text: str) -> str | None:
    if "\0" in text:
        return "a null character"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"the character {text[error.start]!a} that is not UTF-8"
    return None


def _check_length(name: str, text: str, *, max_bytes: int) -> None:
    if (length := len(text.encode())) > max_bytes:
        raise UserError(f"{name}={display(text)} is too long; expected at most {max_bytes:,} bytes, found {length:,}")
    longest = max(text.split("/"), key=lambda part: len(part.encode()))
    if len(longest.encode()) > _MAX_NAME_BYTES:
        raise UserError(f"{name}={display(text)} has a name of more than {_MAX_NAME_BYTES} bytes; shorten it")
