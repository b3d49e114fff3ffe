"""The index for lists: of each record what filters and orders use, so that a page reads only the records it contains.

The index is a cache, and the records alone decide. An entry counts while the files that it was made from are unchanged,
which is seen by their inode, size and times. Whatever the index contains, lists are the same without it. What is at
rest is also in a file, so that the first list after a start reads no more records than the second.
"""

import os
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.index_file import IndexFile

SETTLED_NS = 2 * 10**9
"""Age at which a later change has a different time, even on file systems with a resolution of seconds."""

_MAX_KEPT = 300
"""Resources of pages: with their specifications, they need some megabytes."""

Signature = tuple[str, int]
"""Signature of the files of a record, and the time of their last change in nanoseconds."""

AT_REST = "at rest"
"""The live state of a record that nothing is changing."""

UNKNOWN: Signature = ("", 2**63)
"""The signature of a record that is read again each time."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Fields of a resource that filters and orders use; several readers share it, so none may change it."""

    content: JsonObject | None
    """None: there is a record, but lists do not contain it."""
    damaged: str = ""
    """Why the record cannot be used; empty if it can."""
    live: str | None = ""
    """Dependencies of the content besides the files of the signature; None: it is read again each time."""

    @classmethod
    def of(cls, content: JsonObject | None, *, live: str | None, is_final: bool) -> "Summary":
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


class ResourceCache:
    """The resources of the last pages with the signatures of their files. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[str, JsonObject]] = OrderedDict()

    def get(self, key: tuple[str, str], text: str) -> JsonObject | None:
        """Return the resource of a collection and an id, None if it is not kept or has another signature now."""
        with self._lock:
            kept_text, resource = self._kept.get(key, ("", None))
            if resource is None or kept_text != text:
                return None
            self._kept.move_to_end(key)
            return resource

    def keep(self, key: tuple[str, str], text: str, resource: JsonObject) -> None:
        """Keep a resource in place of the one that was used least recently."""
        with self._lock:
            self._kept[key] = text, resource
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)


class Index:
    """The summaries that this process has read. Safe for several threads.

    Args:
        file: File with the summaries of records at rest, for the next process.
    """

    def __init__(self, file: IndexFile) -> None:
        self._file, self._opening = file, threading.Lock()
        self.pages = ResourceCache()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._entries: dict[str, dict[str, tuple[str, Summary]]] = {}
        """Collection -> id -> the signature of the files, and the summary."""

    def summaries(self, records: Records) -> Iterator[tuple[str, Summary]]:
        """Return the summary of each record by its id, as the records are now.

        Hold no lock that reading a record takes. The index of the collection is locked until the iterator ends.
        """
        collection = records.collection
        with self._opening:
            lock = self._locks[collection]
        # Two lists at once do not both read all records.
        with lock:
            entries = self._entries.get(collection)
            if entries is None:
                kept = self._file.read(collection)
                entries = {each: (text, Summary(content=content)) for each, (text, content) in kept.items()}
                self._entries[collection] = entries
            now, signatures = time.time_ns(), records.signatures()
            gone = entries.keys() - signatures.keys()
            for each in gone:
                del entries[each]
            new: dict[str, tuple[str, Any]] = {}
            try:
                for resource_id, (text, changed_ns) in signatures.items():
                    known, summary = entries.get(resource_id, (None, Summary(content=None)))
                    if known == text and (not summary.live or records.live(resource_id) == summary.live):
                        yield resource_id, summary
                        continue
                    summary = records.summary(resource_id)
                    # A change so recent might be followed by one with the same time.
                    if summary.live is not None and changed_ns < now - SETTLED_NS:
                        entries[resource_id] = text, summary
                        if not summary.live:
                            new[resource_id] = text, summary.content
                    yield resource_id, summary
            finally:
                if new or gone:
                    self._file.write(collection, new, gone)
