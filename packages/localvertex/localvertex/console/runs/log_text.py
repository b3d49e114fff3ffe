"""The text of a log as the page shows it, without escape sequences, and the index of each character that is shown."""

import codecs
import re
from collections.abc import Iterable, Iterator

_INVALID = "\x1a"
"""Replaces a byte that is not UTF-8, and is one byte, so that offsets stay right; shown as a replacement character."""

_ESCAPES = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[@-_]"

_INVISIBLE = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"

_SEQUENCES = re.compile(_ESCAPES)
_CHARACTERS = re.compile(_INVISIBLE)
_HIDDEN = re.compile(f"{_ESCAPES}|({_INVISIBLE})")
"""The same as in page/logs/text.js, so that a search finds what is shown."""

_WRITTEN = {code: f"\\u{code:04x}" for code in range(0x2070) if _CHARACTERS.match(chr(code))}
_WRITTEN[ord(_INVALID)] = "\N{REPLACEMENT CHARACTER}"
"""Replacement of each character that would hide or reorder others."""


def _substitute(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _INVALID * (error.end - error.start), error.end


codecs.register_error("localvertex.log", _substitute)


def decode(data: bytes, *, is_whole: bool) -> tuple[str, int]:
    """Return the text and its number of bytes; unless the data is whole, an incomplete last character is left out.

    The text has as many bytes in UTF-8 as the data.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("localvertex.log")
    text = decoder.decode(data, is_whole)
    return text, len(data) - len(decoder.getstate()[0])


def displayed_lines(text: str) -> str:
    """Return lines as the page shows them: without escape sequences, and progress bars in their last state."""
    if not _CHARACTERS.search(text):
        return text
    if "\r" in text:
        text = "\n".join(line[slice(*_state(line))] if "\r" in line else line for line in text.split("\n"))
    text = _SEQUENCES.sub("", text)
    return text.translate(_WRITTEN) if _CHARACTERS.search(text) else text


def indices(columns: Iterable[int], line: str) -> Iterator[int]:
    """Yield the index in a line of each character that is shown at a column; the columns ascend."""
    at, end = _state(line)
    tokens = _HIDDEN.finditer(line, at, end)
    shown_at, token, width = 0, next(tokens, None), 0
    for column in columns:
        while token and column >= shown_at + token.start() - at + (width := _width(token)):
            shown_at, at = shown_at + token.start() - at + width, token.end()
            token = next(tokens, None)
        is_in_token = token and column >= shown_at + token.start() - at
        yield token.start() if token and is_in_token else at + column - shown_at


def _width(token: re.Match[str]) -> int:
    """Return the number of characters that are shown in place of a hidden one; 0 for an escape sequence."""
    return len(_WRITTEN[ord(token[1])]) if token[1] else 0


def _state(line: str) -> tuple[int, int]:
    """Return where the last state of a line begins and ends: a carriage return overwrites what precedes it."""
    end = len(line.rstrip("\r"))
    return line.rfind("\r", 0, end) + 1, end
