"""The index for lists: of each record what filters and orders use, so that a page reads only the records it contains.

The index is a cache in sqlite, and the records alone decide. An entry counts while the files that it was made from are
unchanged, which is seen by their inode, size and times. Whatever happens to the index, lists are the same without it.
"""

import json
import os
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from localvertex_base.lines import WriteLine

FILE = "index.sqlite"

FORMAT = 1
"""Raise it when an entry contains something else for the same files: an index of another format is built again."""

_TABLE = "CREATE TABLE entries (collection TEXT, id BLOB, entry BLOB, PRIMARY KEY (collection, id)) WITHOUT ROWID"

_NUM_ROWS = 500
"""Rows per transaction: an interrupted rebuild continues where it was."""

_SETTLED_NS = 2 * 10**9
"""Age of a change from which on a later one has another time, on file systems with a resolution of seconds, too."""

_CHECKSUM = b"%08x"
_LENGTH = len(_CHECKSUM % 0)

_decode = json.JSONDecoder().raw_decode
"""Half of the time of json.loads, for thousands of small texts."""

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)

Signature = tuple[str, int]
"""Signature of the files of a record, and the time of their last change in nanoseconds."""

AT_REST = "at rest"
"""The live state of a record that nothing is changing."""

UNKNOWN: Signature = ("", 2**63)
"""The signature of a record that is read again each time."""

Entry = tuple[str, str, str, dict[str, Any] | None]
"""Id, signature, live state and content."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Fields of a resource that filters and orders use."""

    content: dict[str, Any] | None
    """None: there is a record, but lists do not contain it."""
    damaged: str = ""
    """Why the record cannot be used; empty if it can."""
    live: str | None = ""
    """Dependencies of the content besides the files of the signature; None: it is read again each time."""

    @classmethod
    def of(cls, content: dict[str, Any] | None, *, live: str, is_final: bool) -> "Summary":
        """Build a summary; what has ended and is at rest depends on its files only."""
        return cls(content=content, live="" if is_final and live == AT_REST else live)


class Records(Protocol):
    """The records of a collection."""

    @property
    def collection(self) -> str:
        """The name of the collection."""

    def signatures(self) -> dict[str, Signature]:
        """Return the signatures by id."""

    def live(self, resource_id: str) -> str:
        """Return the present `Summary.live` of a record whose summary has one."""

    def summary(self, resource_id: str) -> Summary:
        """Read a record."""


def signature(path: str) -> Signature:
    """Return the signature of one file, which may be missing."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return "", 0
    except OSError:
        return UNKNOWN
    text = f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    return text, status.st_mtime_ns


class Index:
    """The index of a work folder, which may be deleted or damaged at any time.

    Args:
        path: The file.
        report: Called with each problem.
    """

    def __init__(self, path: Path, report: WriteLine) -> None:
        self._path, self._report = path, report
        self._opening = threading.Lock()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def summaries(self, records: Records) -> Iterator[tuple[str, Summary]]:
        """Return the summary of each record by its id, as the records are now.

        Hold no lock that reading a record takes. The index of the collection is locked until the iterator ends.
        """
        with self._opening:
            lock = self._locks[records.collection]
        # Two lists at once do not both read all records.
        with lock:
            now, signatures, gone = time.time_ns(), records.signatures(), []
            for resource_id, text, live, content in self._entries(records.collection):
                if resource_id not in signatures:
                    gone.append(resource_id)
                elif signatures[resource_id][0] == text and (not live or records.live(resource_id) == live):
                    del signatures[resource_id]
                    yield resource_id, Summary(content=content, live=live)
            entries: list[Entry] = []
            for resource_id, (text, changed_ns) in signatures.items():
                summary = records.summary(resource_id)
                yield resource_id, summary
                # A change so recent might be followed by one with the same time.
                if summary.live is not None and changed_ns < now - _SETTLED_NS:
                    entries.append((resource_id, text, summary.live, summary.content))
                if len(entries) == _NUM_ROWS:
                    self._write(records.collection, entries)
                    entries.clear()
            self._write(records.collection, entries, gone)

    def _entries(self, collection: str) -> Iterator[Entry]:
        try:
            with closing(self._open()) as connection:
                for (data,) in connection.execute("SELECT entry FROM entries WHERE collection = ?", (collection,)):
                    yield _decode_entry(data)
        except (sqlite3.Error, ValueError, OSError) as error:
            self._fail(error)

    def _write(self, collection: str, entries: Collection[Entry], gone: Collection[str] = ()) -> None:
        if not entries and not gone:
            return
        rows = [(collection, os.fsencode(each[0]), _encode_entry(each)) for each in entries]
        try:
            with closing(self._open()) as connection, connection:
                connection.executemany(
                    "DELETE FROM entries WHERE collection = ? AND id = ?",
                    [(collection, os.fsencode(id)) for id in gone],
                )
                connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            self._fail(error)

    def _open(self) -> sqlite3.Connection:
        """Open the file; create it when it is missing or of another format."""
        with self._opening:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = self._connect()
            try:
                if connection.execute("PRAGMA user_version").fetchone() != (FORMAT,):
                    connection.close()
                    self._path.unlink(missing_ok=True)
                    connection = self._connect()
                    connection.executescript(f"BEGIN; {_TABLE}; PRAGMA user_version = {FORMAT}; COMMIT")
            except BaseException:
                connection.close()
                raise
            return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, check_same_thread=False)
        # No second file, which could belong to an index that was deleted. An entry that was half written is noticed.
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    def _fail(self, error: Exception) -> None:
        """Remove an index that is damaged; do without one that cannot be read or written."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if isinstance(error, OSError) or (code & 0xFF) not in _DAMAGED:
            # When it was deleted while it was open, the next list makes a new one.
            if code != sqlite3.SQLITE_READONLY_DBMOVED:
                self._report(f"{self._path} cannot be used ({error}); until it can, each list reads all records")
            return
        with self._opening, suppress(OSError):
            self._path.unlink()
        self._report(f"{self._path} was damaged ({error}); it is built again from the records")


def _encode_entry(entry: Entry) -> bytes:
    data = json.dumps(entry).encode()
    return _CHECKSUM % crc32(data) + data


def _decode_entry(data: Any) -> Entry:
    """Read an entry.

    Raises:
        ValueError: It is damaged.
    """
    if not isinstance(data, bytes) or data[:_LENGTH] != _CHECKSUM % crc32(memoryview(data)[_LENGTH:]):
        raise ValueError("an entry does not match its checksum")
    (resource_id, text, live, content), _ = _decode(data.decode(), _LENGTH)
    return resource_id, text, live, content
