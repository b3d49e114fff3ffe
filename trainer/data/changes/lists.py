"""Merges two lists of images line by line; both are sorted by name, so only one line of each is in memory."""

import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Any

from localvertex_base.userinput.errors import UserError
from trainer.data.preparing import image_list

Line = dict[str, Any]
_NUM_NUMBERS = 8
"""Width, height, and two figures for each of red, green and blue."""
_LIMIT = 2**63
"""Above any of them; Python's whole numbers have no end, and floats have."""


def pairs(previous_directory: str, new_directory: str) -> Iterator[tuple[Line | None, Line | None]]:
    """Yield the lines of each name, None for a list without it; equal lines are the same object.

    Raises:
        UserError: A list is missing or damaged.
    """
    before, now = _List(previous_directory), _List(new_directory)
    while before.encoded or now.encoded:
        if before.encoded == now.encoded:
            line = before.line()
            yield line, line
            before.advance()
            now.advance()
            continue
        previous, present = before.line(), now.line()
        order = _order(previous, present)
        yield previous if order <= 0 else None, present if order >= 0 else None
        if order <= 0:
            before.advance()
        if order >= 0:
            now.advance()


def _order(before: Line | None, now: Line | None) -> int:
    """Return which line is next: negative for the first list, positive for the second, 0 for both."""
    if before is None or now is None:
        return 1 if before is None else -1
    return bool(before["name"] > now["name"]) - bool(before["name"] < now["name"])


class _List:
    """A list of images and the current line."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._remaining = image_list.read_encoded(directory)
        self._line: Line | None = None
        self._name = ""
        self.encoded = b""
        """The encoded line; empty at the end of the list."""
        self.advance()
        if not self.encoded:
            raise self._damage_error(EOFError("it is empty"))

    def advance(self) -> None:
        """Read the next line.

        Raises:
            UserError: The list is missing or damaged.
        """
        self._line = None
        try:
            self.encoded = next(self._remaining, b"")
        except FileNotFoundError:
            path = f"{image_list.FILE} of {self._directory!r}"
            raise UserError(f"{path} is missing; prepare the dataset again") from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise self._damage_error(error) from None

    def line(self) -> Line | None:
        """Return the content of the line; None at the end of the list.

        Raises:
            UserError: It is damaged.
        """
        if self._line is None and self.encoded:
            try:
                self._line = _parse(self.encoded)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise self._damage_error(error) from None
            if self._line["name"] < self._name:
                raise self._damage_error(ValueError(f"{self._line['name']!r} follows {self._name!r}"))
            self._name = self._line["name"]
        return self._line

    def _damage_error(self, error: Exception) -> UserError:
        path = f"{image_list.FILE} of {self._directory!r}"
        return UserError(f"{path} is damaged ({type(error).__name__}: {error}); prepare the dataset again")


def _parse(encoded: bytes) -> Line:
    """Return a line if it has all required values.

    Raises:
        ValueError: A value is missing or has another type.
    """
    line: Line = json.loads(encoded)
    is_usable = "content_hash" in line
    texts = ("name", "label", "content_hash") if is_usable else ("name", "reason")
    numbers = [line["width"], line["height"], *line["pixel_sums"], *line["pixel_sums_of_squares"]] if is_usable else []
    if not all(type(line[key]) is str for key in texts) or not all(type(number) is int for number in numbers):
        raise ValueError("a value of another type")
    "".join(line[key] for key in texts).encode()  # raises UnicodeEncodeError, a ValueError
    if not all(0 <= number < _LIMIT for number in numbers):
        raise ValueError("a figure out of range")
    if is_usable and len(numbers) != _NUM_NUMBERS:
        raise ValueError(f"{len(numbers)} figures in place of {_NUM_NUMBERS}")
    return line
