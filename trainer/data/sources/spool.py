"""Entries of a listing in a file on disk, so the list of a source's images needs no memory."""

import json
import tempfile
import weakref
from collections.abc import Iterator

from trainer.data.sources.source import Identity

_CHUNK_BYTES = 2**16


class Spool:
    """Names, locations and identities in the order in which they were appended.

    The file has no name and vanishes with the process.

    Several iterators may be used at the same time, by one thread.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="listing-")
        weakref.finalize(self, self._file.close)
        self._end, self._is_at_end = 0, True

    def append(self, name: str, location: str, identity: Identity | None = None) -> None:
        """Add an entry; texts with lone surrogates, as Python shows bytes that are not UTF-8, come back unchanged."""
        if not self._is_at_end:
            self._is_at_end = self._file.seek(self._end) == self._end
        self._end += self._file.write(json.dumps([name, location, identity]).encode() + b"\n")

    def __iter__(self) -> Iterator[tuple[str, str, Identity | None]]:
        position = 0
        while position < self._end:
            self._is_at_end = False
            self._file.seek(position)
            lines = self._file.readlines(_CHUNK_BYTES)
            position = self._file.tell()
            for line in lines:
                name, location, identity = json.loads(line.decode())
                yield name, location, identity
