"""The records of a collection in the store, as its lists read them: through the index, or one by one."""

import time
from collections.abc import Callable, Generator, Iterable, Set
from dataclasses import dataclass

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import not_found
from localvertex.api.rest.index import AT_REST, MISSING, SETTLED_NS, Signature, Summary, both
from localvertex.api.rest.store import Damaged, Store

Resource = JsonObject


@dataclass(frozen=True, kw_only=True)
class Viewed:
    """A resource as it is now."""

    resource: Resource | None
    """None: lists do not contain it."""
    is_sound: bool = True
    """Whether everything that it is built from could be read."""
    is_final: bool = True
    """Whether it changes only when the files of its signature do."""


@dataclass(frozen=True, kw_only=True)
class StoredRecords:
    """The records of a collection."""

    store: Store
    collection: str
    stand_in: Callable[[Call, str, str], Resource]
    """Builds what lists contain in place of a damaged record, from its id and the reason."""
    large: frozenset[str]
    """Fields that are not in the index; a list whose filter or order uses one reads all records."""
    view: Callable[[Resource], Viewed] = lambda stored: Viewed(resource=stored)
    """Builds the resource of a stored record."""
    searchable: Callable[[Resource], Resource] = lambda resource: resource
    """Returns a resource with the fields that exist in filters only."""
    complete: Callable[[Resource], Resource] = lambda resource: resource
    """Adds what only the resources of a page have."""
    folders: str = ""
    """The folder with a folder for each record, in which its other files are."""
    other_files: Callable[[str], Signature] = lambda _: MISSING
    """Returns the signature of the other files that a resource is built from."""
    live_of: Callable[[str], str] = lambda _: AT_REST
    """Returns the present `Summary.live`."""

    @property
    def lists(self) -> Iterable[str]:
        """The folders with an entry for each record, `ID` or `ID.json`."""
        own = f"{self.store.folder}/{self.collection}"
        return [own, self.folders] if self.folders else [own]

    def folder_of(self, resource_id: str) -> str:
        """Return the folder with the other files of a record; empty if it has none."""
        return self.folders and f"{self.folders}/{resource_id}"

    def ids(self) -> Set[str]:
        """Return the ids of all records."""
        return self.store.names(self.collection)

    def signatures(self, ids: Iterable[str]) -> dict[str, Signature]:
        """Return the signatures of those that exist."""
        found = self.store.signatures(self.collection, ids)
        return {each: both(own, self.other_files(each)) for each, own in found.items()}

    def content(self, call: Call, resource_id: str, summary: Summary) -> Resource | None:
        """Return what filters and orders use, of a stand-in if the record is damaged; None if lists lack it."""
        if summary.damaged:
            return self.searchable(self.stand_in(call, resource_id, summary.damaged))
        return summary.content

    def live(self, resource_id: str) -> str:
        """Return the present `Summary.live`."""
        return self.live_of(resource_id)

    def summary(self, resource_id: str) -> Summary:
        """Read a record, without its large fields."""
        live = self.live_of(resource_id)
        try:
            viewed = self._list_view(resource_id)
        except Damaged as error:
            return Summary(content=None, damaged=str(error), live=None)
        content = None
        if viewed.resource is not None:
            every = self.searchable(viewed.resource)
            content = {name: value for name, value in every.items() if name not in self.large}
        if not viewed.is_sound:
            return Summary(content=content, live=None)
        return Summary.of(content, live=live, is_final=viewed.is_final)

    def resource(self, call: Call, resource_id: str) -> Resource | None:
        """Return a resource, a stand-in when its record is damaged, or None when lists do not contain it."""
        return self._view_or_stand_in(call, resource_id).resource

    def page_resource(self, call: Call, resource_id: str) -> Resource | None:
        """Return what `resource` returns; callers must not change it. Resources at rest are kept for the next page."""
        text, changed_ns, _ = self.signatures([resource_id]).get(resource_id, MISSING)
        key = self.collection, resource_id
        if (kept := self.store.index.pages.get(key, text)) is not None:
            return kept
        viewed = self._view_or_stand_in(call, resource_id)
        is_settled = changed_ns < time.time_ns() - SETTLED_NS
        is_at_rest = viewed.is_sound and viewed.is_final and is_settled and self.live_of(resource_id) == AT_REST
        if viewed.resource and is_at_rest:
            self.store.index.pages.keep(key, text, viewed.resource)
        return viewed.resource

    def get(self, call: Call) -> Resource:
        """Return the resource that a request names, a stand-in when its record is damaged.

        Raises:
            ApiError: It does not exist.
        """
        try:
            viewed = self.view(self.store.find(call, self.collection)).resource
        except Damaged as error:
            return self.stand_in(call, call.resource_id, str(error))
        if viewed is None:
            raise not_found(call.location.child(self.collection, call.resource_id))
        return self.complete(viewed)

    def find_all(self, call: Call, used: set[str]) -> Generator[Resource]:
        """Return all resources and stand-ins, with at least these fields and those that exist in filters only."""
        if used & self.large:
            every = (self.resource(call, each) for each in self.ids())
            yield from (self.searchable(each) for each in every if each is not None)
            return
        contents = (self.content(call, *each) for each in self.store.index.summaries(self))
        yield from (each for each in contents if each is not None)

    def _view_or_stand_in(self, call: Call, resource_id: str) -> Viewed:
        try:
            return self._list_view(resource_id)
        except Damaged as error:
            return Viewed(resource=self.stand_in(call, resource_id, str(error)), is_sound=False)

    def _list_view(self, resource_id: str) -> Viewed:
        stored = self.store.read(self.collection, resource_id)
        return Viewed(resource=None) if stored is None else self.view(stored)
