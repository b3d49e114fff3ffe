"""What tensorboards, experiments, runs and time series have in common: create, get, list, patch and delete."""

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from uuid import uuid4

from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, invalid
from localvertex.api.rest.listing import page
from localvertex.api.rest.operations import Operations
from localvertex.api.rest.store import Damaged, Store
from localvertex.api.tensorboards import records
from localvertex.api.tensorboards.place import KINDS, TENSORBOARD, TIME_SERIES, Kind, Place
from localvertex.api.tensorboards.records import VALUE_FIELDS, Resource
from localvertex.store import record
from localvertex_base.userinput.spelling import camel, listed

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")

_MAX_BATCH = 1000

View = Callable[[Place, Resource], Resource]


class Resources:
    """All resources of one kind.

    Args:
        kind: Which kind.
        store: The records.
        operations: The operations of the API.
        view: Adds the fields of a resource that are not in its record.
    """

    def __init__(
        self, kind: Kind, store: Store, operations: Operations, view: View = lambda _, resource: resource
    ) -> None:
        self.kind, self._store, self._operations, self._view = kind, store, operations, view
        store.expect(kind.collection, records.check)

    def create(self, call: Call) -> Resource:
        """Create a resource."""
        content = self.read(call)
        wanted = call.query.get(f"{self.kind.field}Id", "")
        (created,) = self.create_all([(Place.of_call(call), wanted, content)])
        return created

    def batch_create(self, call: Call) -> Resource:
        """Create several resources, all or none; the requests name their parents."""
        name = f"BatchCreate{self.kind.plural[0].upper()}{self.kind.plural[1:]}Request"
        requests = messages.normalised(call.version, name, call.body).get("requests", [])
        if not 0 < len(requests) <= _MAX_BATCH:
            raise invalid(f"requests: expected 1 to {_MAX_BATCH}, found {len(requests)}")
        inside, num_ids, wanted = Place.of_call(call), KINDS.index(self.kind), []
        for each in requests:
            content = each.get(self.kind.field, {})
            messages.check_names({name: content[name] for name in self._named if name in content})
            parent = Place.of_name(each.get("parent", "") or inside.name, inside, num_ids)
            wanted.append((parent, each.get(f"{self.kind.field}Id", ""), content))
        return {self.kind.plural: self.create_all(wanted)}

    def read(self, call: Call) -> Resource:
        """Read the body of a request that contains a resource."""
        content = messages.normalised(call.version, self.kind.message, call.body)
        messages.check_names({name: content[name] for name in self._named if name in content})
        return content

    def create_all(self, wanted: list[tuple[Place, str, Resource]]) -> list[Resource]:
        """Create all of these resources or none.

        Args:
            wanted: The parent, the id, which may be empty, and the content of each.

        Raises:
            ApiError: One of them cannot be created.
            OSError: A record cannot be written.
        """
        created: list[Place] = []
        with self._store.lock:
            for parent in {each: None for each, _, _ in wanted}:
                records.check_parent(self._store, parent)
            planned = self._planned(wanted)
            try:
                for place, resource in planned.items():
                    created.append(place)
                    self._store.write(place.collection, place.id, resource)
            except OSError:
                for place in created:
                    self._store.remove(place.collection, place.id)
                raise
        return [self._view(*each) for each in planned.items()]

    def get(self, call: Call) -> Resource:
        """Return a resource."""
        place = Place.of_call(call)
        try:
            return self._view(place, records.read(self._store, place))
        except Damaged as error:
            return records.damaged_resource(place, str(error))

    def list_all(self, call: Call) -> Resource:
        """List the resources of a parent."""
        parent = Place.of_call(call)
        records.check_parent(self._store, parent)
        intact, damaged = records.survey(self._store, parent)
        found = [self._view(*each) for each in intact.items()]
        found += [records.damaged_resource(*each) for each in damaged.items()]
        fields = messages.field_names(call.version, self.kind.message)
        return page(call, self.kind.plural, found, fields=fields, searchable=_searchable)

    def patch(self, call: Call) -> Resource:
        """Change the fields that the mask names; without a mask those that are in the body."""
        content, place = self.read(call), Place.of_call(call)
        mask = call.query.get("updateMask", "")
        named = [camel(each.strip()) for each in mask.split(",")] if mask else [*{*content} & {*self.kind.changeable}]
        if not named or not {*named} <= {*self.kind.changeable}:
            raise invalid(f"updateMask {mask[:200]!r}: expected some of {', '.join(self.kind.changeable)}")
        with self._store.lock:
            resource = records.find(self._store, place)
            changed = {name: value for name, value in resource.items() if name not in named}
            changed |= {name: content[name] for name in named if name in content}
            self._check_name(changed, self._names_in(place.parent) - {resource.get("displayName", "")})
            changed["updateTime"] = record.now()
            self._store.write(place.collection, place.id, changed)
        return self._view(place, changed)

    def delete(self, call: Call) -> Resource:
        """Delete a resource with everything in it."""
        place = Place.of_call(call)
        with self._store.lock:
            with suppress(Damaged):
                records.read(self._store, place)
            self.remove(place)
        return self._operations.done(call, "DeleteOperationMetadata")

    def remove(self, place: Place) -> None:
        """Delete the files of a resource and of everything in it. Hold the store's lock."""
        folder = records.folder(self._store, place)
        if folder.exists():
            shutil.rmtree(folder)
        # The record comes last, so that an interrupted deletion can be completed.
        self._store.remove(place.collection, place.id)

    @property
    def _named(self) -> tuple[str, ...]:
        """The fields with documented limits; the display name of a time series is a tag of any length."""
        return ("labels",) if self.kind is TIME_SERIES else ("displayName", "labels")

    def _planned(self, wanted: list[tuple[Place, str, Resource]]) -> dict[Place, Resource]:
        """Build the records, and check that none of them exists."""
        now, names, planned = record.now(), dict[Place, set[str]](), dict[Place, Resource]()
        for parent, wanted_id, content in wanted:
            place = parent.child(self._new_id(wanted_id))
            if place in planned or self._store.path(place.collection, place.id).exists():
                raise ApiError(Status.ALREADY_EXISTS, f"{place.name} already exists")
            taken = names.setdefault(parent, self._names_in(parent) if parent not in names else set())
            self._check_name(content, taken)
            if self.kind is TIME_SERIES and content.get("valueType") not in VALUE_FIELDS:
                raise invalid(f"valueType: expected {listed(VALUE_FIELDS)}")
            taken.add(content.get("displayName", ""))
            kept = (*self.kind.changeable, "source", "valueType", "pluginName")
            resource = {"name": place.name, "createTime": now, "updateTime": now}
            planned[place] = resource | {name: content[name] for name in kept if name in content}
        return planned

    def _names_in(self, parent: Place) -> set[str]:
        """Return the display names that are taken."""
        if not self.kind.is_name_unique:
            return set()
        return {each.get("displayName", "") for each in records.survey(self._store, parent)[0].values()}

    def _check_name(self, content: Resource, taken: set[str]) -> None:
        """Check the display name, which only an experiment can be without."""
        name = content.get("displayName", "")
        if not name and (self.kind.is_name_unique or self.kind is TENSORBOARD):
            raise invalid(f"{self.kind.field}.displayName is missing")
        if self.kind.is_name_unique and name in taken:
            # The SDK recognises this status and these words, and then uses the resource with this name.
            raise invalid(f"{self.kind.message} with the display name {name[:200]!r} already exists")

    def _new_id(self, wanted: str) -> str:
        if (not wanted and not self.kind.is_id_required) or not self.kind.takes_id:
            return str(uuid4().int >> 66)
        if not _ID.fullmatch(wanted):
            raise invalid(f"{self.kind.field}Id {wanted[:140]!r}: expected 1 to 128 lower-case letters, digits and '-'")
        return wanted


def _searchable(resource: Resource) -> Resource:
    """Return the resource with a field that the API's JSON omits when it is false."""
    return {"isDefault": False} | resource
