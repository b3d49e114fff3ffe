"""The index for lists: of each record what filters and orders use, so that a page reads only the records it contains.

The index is a cache, and the records alone decide. An entry counts while the files that it was made from are unchanged,
which is seen by their inode, size and times. Whatever the index contains, lists are the same without it. What is at
rest is also in a file, so that the first list after a start reads no more records than the second.

The first list looks at all files. From the second on, their folders are watched, and a list looks at what has changed
and at what is not at rest. The places of the records in the last orders are kept, too.
"""

import gc
import os
import stat
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.index_file import IndexFile
from localvertex.api.rest.watch import NEVER, Watch

SETTLED_NS = 2 * 10**9
"""Age at which a later change has a different time, even on file systems with a resolution of seconds."""

_MAX_KEPT = 300
"""Resources of pages: with their specifications, they need some megabytes."""

_MAX_ORDERS = 8
"""Filters and orders whose places are kept."""

_SCAN_SECONDS = 60
"""Time after which all files are looked at, although their folders are watched."""


Signature = tuple[str, int, bool]
"""What shows whether files have changed, the time of their last change in nanoseconds, and whether all changes are made
through their folders: they have one name. A plain tuple costs Python's collector nothing."""

MISSING: Signature = ("", 0, True)


def both(one: Signature, other: Signature) -> Signature:
    """Return the signature of the files of two."""
    return f"{one[0]} {other[0]}", max(one[1], other[1]), one[2] and other[2]


AT_REST = "at rest"
"""The live state of a record that nothing is changing."""

UNKNOWN: Signature = ("", 2**63, True)
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

    @property
    def lists(self) -> Iterable[str]:
        """The folders with an entry for each record, `ID` or `ID.json`."""

    def folder_of(self, resource_id: str) -> str:
        """Return the folder in one of `lists` with the other files of a record; empty if it has none."""

    def ids(self) -> Set[str]:
        """Return the ids of all records, and of what could become one by a change in its folder."""

    def signatures(self, ids: Iterable[str]) -> dict[str, Signature]:
        """Return the signatures of those that exist, and of those that only this process knows."""

    def live(self, resource_id: str) -> str:
        """Return the present `Summary.live` of a record whose summary has one."""

    def summary(self, resource_id: str) -> Summary:
        """Read a record."""


def signature(path: str) -> Signature:
    """Return the signature of one file, which may be missing."""
    try:
        status = os.lstat(path)
        has_one_name = status.st_nlink == 1 and not stat.S_ISLNK(status.st_mode)
        status = status if has_one_name else os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return UNKNOWN if os.path.islink(path) else MISSING
    except OSError:
        return UNKNOWN
    text = f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    return text, status.st_mtime_ns, has_one_name


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


Place = tuple[str, ...]
"""The position of a resource in an order: the values of the fields, the creation time and the name."""

PlaceOf = Callable[[str, Summary], Place | None]
"""Returns the place of a record, from its id and summary; None if it is not in a list."""


@dataclass(kw_only=True)
class _Order:
    """The places of all records in one order."""

    changed: set[str]
    """Ids whose places are not those of their summaries."""
    by_id: dict[str, Place] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)


@dataclass(kw_only=True)
class Known:
    """What is known of the records of a collection."""

    entries: dict[str, tuple[str, Summary]]
    """Id -> the signature of the files, empty for what is read again each time, and the summary."""
    moment: int = NEVER
    """The moment up to which the changes of watched folders are in the entries."""
    next_scan: float = 0.0
    moving: set[str] = field(default_factory=set)
    """Ids that are looked at each time."""
    orders: dict[object, _Order] = field(default_factory=dict)


_UNREAD = "", Summary(content=None)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause Python's collector, which would go through all that stays again and again, as long as reading it takes."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Index:
    """The summaries that this process has read. Safe for several threads.

    Args:
        file: File with the summaries of records at rest, for the next process.
    """

    def __init__(self, file: IndexFile) -> None:
        self._file, self._opening = file, threading.Lock()
        self.pages, self._watch = ResourceCache(), Watch()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._known: dict[str, Known] = {}

    def summaries(self, records: Records) -> Iterable[tuple[str, Summary]]:
        """Return the summary of each record by its id, as the records are now.

        Hold no lock that reading a record takes.
        """
        with self._now(records) as known:
            return [(each, summary) for each, (_, summary) in known.entries.items()]

    def places(
        self, records: Records, order: object, place_of: PlaceOf, in_order: Callable[[list[Place]], list[Place]]
    ) -> list[Place]:
        """Return the places of the records that are in a list, in their order, as the records are now.

        Args:
            records: The records.
            order: All that the next two depend on.
            place_of: Returns the place of one.
            in_order: Returns places in their order.
        """
        with self._now(records) as known:
            kept = known.orders.pop(order, None) or _Order(changed={*known.entries})
            known.orders[order] = kept
            while len(known.orders) > _MAX_ORDERS:
                del known.orders[next(iter(known.orders))]
            new = {
                each: place
                for each in kept.changed
                if (place := place_of(each, known.entries[each][1]) if each in known.entries else None)
                != kept.by_id.get(each)
            }
            gone = {kept.by_id.pop(each) for each in new if each in kept.by_id}
            kept.by_id |= {each: place for each, place in new.items() if place}
            if new:
                places = [each for each in kept.places if each not in gone] if gone else kept.places
                kept.places = in_order([*places, *filter(None, new.values())])
            kept.changed = set()
            return kept.places

    def close(self) -> None:
        """Watch no folder any more."""
        self._watch.close()

    @contextmanager
    def _now(self, records: Records) -> Iterator[Known]:
        """Lock what is known of a collection, with the entries as the records are now."""
        with self._opening:
            lock = self._locks[records.collection]
        # Two lists at once do not both read all records.
        with lock:
            known = self._known.get(records.collection)
            if known is None:
                with _collector_paused():
                    kept = self._file.read(records.collection)
                    entries = {each: (text, Summary(content=content)) for each, (text, content) in kept.items()}
                known = self._known[records.collection] = Known(entries=entries)
                self._look(records, known, NEVER, None)
            else:
                self._look(records, known, *self._watch.changes(records.lists, known.moment))
            yield known

    def _look(self, records: Records, known: Known, moment: int, paths: list[str] | None) -> None:
        """Look at the records that have changed, at those that are not at rest, or at all of them."""
        entries, now, is_scan = known.entries, time.time_ns(), paths is None or time.monotonic() > known.next_scan
        if paths is None or is_scan:
            ids, known.next_scan = records.ids(), time.monotonic() + _SCAN_SECONDS
        else:
            names = {os.path.basename(each) for each in paths}
            ids = known.moving | names | {each.removesuffix(".json") for each in names}
        # What changes after its folder is watched is looked at next time.
        unwatched = set() if moment == NEVER else {each for each in ids if not self._watch.add(records.folder_of(each))}
        signatures = records.signatures(ids)
        gone = (entries.keys() if is_scan else entries.keys() & ids) - signatures.keys()
        moving, new, changed = set[str](), dict[str, tuple[str, Any]](), {*gone}
        for each in gone:
            del entries[each]
        try:
            for each, (text, changed_ns, has_one_name) in signatures.items():
                known_text, summary = entries.get(each, _UNREAD)
                if not text or known_text != text or (summary.live and records.live(each) != summary.live):
                    summary = records.summary(each)
                    # A change so recent might be followed by one with the same time.
                    is_settled = summary.live is not None and changed_ns < now - SETTLED_NS
                    entries[each] = text if is_settled else "", summary
                    changed.add(each)
                    if is_settled and not summary.live:
                        new[each] = text, summary.content
                if summary.live != "" or not entries[each][0] or not has_one_name:
                    moving.add(each)
            known.moving = moving | unwatched
            known.moment = moment
        finally:
            for order in known.orders.values():
                order.changed |= changed
            if new or gone:
                self._file.write(records.collection, new, gone)
