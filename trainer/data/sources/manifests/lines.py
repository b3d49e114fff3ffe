"""Reads the lines of a manifest one by one, within bounded memory, whatever they contain."""

from collections.abc import Iterator
from typing import BinaryIO

from trainer.data.sources.manifests.entry import BadLine

MAX_LINE_BYTES = 2**16
"""Longer lines are bad: an address has at most 1,024 bytes, and a label 128 characters."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def number_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield number and content of each line, without its end; the content is None if it is too long."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.endswith(b"\n") or len(line) < MAX_LINE_BYTES:
            yield number, line.strip()
            continue
        while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
            pass
        yield number, None


def text(line: bytes | None) -> str:
    """Return a line of `number_lines` as text.

    Raises:
        BadLine: It is too long, not UTF-8, or contains null characters.
    """
    if line is None:
        raise BadLine(f"longer than {MAX_LINE_BYTES:,} bytes")
    if b"\0" in line:
        raise BadLine("a null character; expected UTF-8")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None
