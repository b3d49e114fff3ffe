"""Copy the output of a process to its log while it is written, and remove secrets.

Started as `python -I -S masker.py FD MASK`, with the output as standard input, the log as standard output, and the
secrets as a JSON list on the file descriptor FD, so that no other process sees them. It ends when the last process that
can write has ended, even when localvertex itself was killed. Standard library only, no import of this package.
"""

import json
import os
import re
import sys

_BLOCK = 65_536


class Masker:
    """Replaces secrets in a stream, and holds back only text that may begin a secret."""

    def __init__(self, secrets: list[bytes], mask: bytes) -> None:
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets)) or b"(?!)")
        self._longest = len(self._secrets[0]) if self._secrets else 0
        self._mask, self._left = mask, b""

    def feed(self, text: bytes, *, is_end: bool = False) -> bytes:
        """Return what can be written after this part of the stream."""
        text, self._left = self._left + text, b""
        parts, position = [], 0
        while True:
            match = self._pattern.search(text, position)
            held = len(text) if is_end else self._first_beginning(text, position)
            if match is None or match.start() >= held:
                break
            parts += [text[position : match.start()], self._mask]
            position = match.end()
        self._left = text[held:]
        return b"".join([*parts, text[position:held]])

    def _first_beginning(self, text: bytes, start: int) -> int:
        """Return the first index from which the text is the beginning of a secret; its length where there is none."""
        for index in range(max(start, len(text) - self._longest), len(text)):
            end = text[index:]
            if any(len(end) < len(secret) and secret.startswith(end) for secret in self._secrets):
                return index
        return len(text)


def _write(text: bytes) -> None:
    while text:
        text = text[os.write(1, text) :]


def main() -> None:
    """Copy standard input to standard output."""
    with open(int(sys.argv[1]), "rb") as file:
        secrets = [text.encode("utf-8", "surrogateescape") for text in json.load(file)]
    masker = Masker(secrets, sys.argv[2].encode())
    while text := os.read(0, _BLOCK):
        _write(masker.feed(text))
    _write(masker.feed(b"", is_end=True))


if __name__ == "__main__":
    main()
