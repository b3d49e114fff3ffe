"""Divides a split into shards by binary prefixes of the content hashes, as a pure function of its images."""

from collections.abc import Callable, Iterator

TARGET_BYTES = 64 * 2**20
"""Size of the records above which a prefix is split in two; part of the format: another value moves records."""
FIELD_BYTES = 512
"""Size that counts for all other fields of a record; constant, so a longer file name cannot split a shard."""
_NUM_BITS = 256


def layout(extent: Callable[[str, str], tuple[int, int]]) -> Iterator[str]:
    """Yield the prefixes of a split's shards, in the order of the hashes.

    A prefix depends only on its own records, so new images change no other prefix.

    Args:
        extent: Returns two figures of the hashes from the first to the second argument, both included, in hexadecimal:
            the size of their stored images, plus FIELD_BYTES for each, and the number of different hashes, which need
            not be exact from 2 on.

    Yields:
        Prefixes as texts of 0 and 1; the empty one includes all hashes.
    """
    pending = [""]
    while pending:
        prefix = pending.pop()
        num_bytes, num_hashes = extent(*bounds(prefix))
        if num_bytes > TARGET_BYTES and num_hashes > 1:
            pending += [f"{prefix}1", f"{prefix}0"]
        elif num_hashes:
            yield prefix


def bounds(prefix: str) -> tuple[str, str]:
    """Return the first and the last SHA-256 that begins with a binary prefix, in hexadecimal."""
    return _hexadecimal(prefix.ljust(_NUM_BITS, "0")), _hexadecimal(prefix.ljust(_NUM_BITS, "1"))


def _hexadecimal(bits: str) -> str:
    return f"{int(bits, 2):0{_NUM_BITS // 4}x}"
