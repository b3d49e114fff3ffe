"""Damage to small files: every bit of them flipped."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any


def flipped(data: bytes) -> Iterator[bytes]:
    """Yield the data with each of its bits flipped."""
    for number in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[number // 8] ^= 1 << number % 8
        yield bytes(damaged)


def readable(texts: Iterator[bytes]) -> Iterator[Any]:
    """Yield the values of those that are still JSON."""
    for text in texts:
        with contextlib.suppress(ValueError):
            yield json.loads(text)
