"""Create, get, list and delete tensorboards, experiments, runs and time series."""

import re
import shutil
from contextlib import suppress

from localvertex._base.userinput.spelling import join_or
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, invalid
from localvertex.api.rest.listing import page
from localvertex.api.rest.operations import finished_operation
from localvertex.api.rest.records import Resource
from localvertex.api.rest.store import Damaged, Store
from localvertex.api.tensorboards import records
from localvertex.api.tensorboards.place import TENSORBOARD, TIME_SERIES, Kind, Place
from localvertex.api.tensorboards.records import VALUE_FIELDS
from localvertex.store import record

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")

_MAX_BATCH = 1000

_NUM_RUN_IDS = 3

_BLOBS = "localvertex-tensorboards"
"""The bucket of blobs. The service names a bucket of the project, without which the SDK uploads no log."""


class Resources:
    """All resources of one kind."""

    def __init__(self, kind: Kind, store: Store) -> None:
        self.kind, self._store = kind, store
        types = {"valueType!": frozenset(VALUE_FIELDS)} if kind is TIME_SERIES else {}
        store.expect(kind.collection, records.RECORD | types)

    def create(self, call: Call) -> Resource:
        """Create a resource."""
        content = self._check(messages.normalise(self.kind.message, call.body))
        wanted = call.query.get(f"{self.kind.field}Id", "")
        return self._create_all([(Place.of_call(call), wanted, content)])[0]

    def batch_create(self, call: Call) -> Resource:
        """Create several time series, all or none; the requests name their runs."""
        body = messages.normalise("BatchCreateTensorboardTimeSeriesRequest", call.body)
        requests = body.get("requests", [])
        if not 0 < len(requests) <= _MAX_BATCH:
            raise invalid(f"requests: expected 1 to {_MAX_BATCH}, found {len(requests)}")
        experiment, wanted = Place.of_call(call), []
        for each in requests:
            parent = Place.of_name(each.get("parent", ""), experiment, _NUM_RUN_IDS)
            content = self._check(each.get(self.kind.field, {}))
            wanted.append((parent, each.get(f"{self.kind.field}Id", ""), content))
        return {self.kind.plural: self._create_all(wanted)}

    def get(self, call: Call) -> Resource:
        """Return a resource."""
        place = Place.of_call(call)
        try:
            return self._to_resource(records.read(self._store, place))
        except Damaged as error:
            return records.damaged_resource(place, str(error))

    def list_all(self, call: Call) -> Resource:
        """List the resources of a parent."""
        parent = Place.of_call(call)
        records.check_parent(self._store, parent)
        intact, damaged = records.survey(self._store, parent)
        found = [self._to_resource(each) for each in intact]
        found += [records.damaged_resource(*each) for each in damaged.items()]
        fields = messages.field_names(self.kind.message)
        # The API's JSON omits a field that is false.
        return page(call, self.kind.plural, found, fields=fields, searchable=lambda each: {"isDefault": False} | each)

    def delete(self, call: Call) -> Resource:
        """Delete a resource with everything in it."""
        place = Place.of_call(call)
        with self._store.lock:
            with suppress(Damaged):
                records.read(self._store, place)
            folder = records.folder(self._store, place)
            if folder.exists():
                shutil.rmtree(folder)
            # The record comes last, so that an interrupted deletion can be completed.
            self._store.remove(place.collection, place.id)
        return finished_operation(call, "DeleteOperationMetadata")

    def _check(self, content: Resource) -> Resource:
        """Check the fields with documented limits; the display name of a time series is a tag of any length."""
        limited = ("labels",) if self.kind is TIME_SERIES else ("displayName", "labels")
        messages.check_names({name: content[name] for name in limited if name in content})
        return content

    def _create_all(self, wanted: list[tuple[Place, str, Resource]]) -> list[Resource]:
        """Create all of these resources or none.

        Args:
            wanted: The parent, the id, which may be empty, and the content of each.

        Raises:
            ApiError: One of them cannot be created.
            OSError: A record cannot be written.
        """
        created: list[Place] = []
        with self._store.lock:
            planned = self._build_records(wanted)
            try:
                for place, resource in planned.items():
                    created.append(place)
                    self._store.write(place.collection, place.id, resource)
            except OSError:
                for place in created:
                    self._store.remove(place.collection, place.id)
                raise
        return [self._to_resource(each) for each in planned.values()]

    def _build_records(self, wanted: list[tuple[Place, str, Resource]]) -> dict[Place, Resource]:
        """Build the records, and check that none of them exists."""
        now, planned = record.now(), dict[Place, Resource]()
        taken: dict[Place, set[str]] = {}
        for parent, wanted_id, content in wanted:
            if parent not in taken:
                records.check_parent(self._store, parent)
                found = records.survey(self._store, parent)[0] if self.kind.is_name_unique else []
                taken[parent] = {each.get("displayName", "") for each in found}
            place, name = parent.child(self._new_id(wanted_id)), content.get("displayName", "")
            if place in planned or self._store.path(place.collection, place.id).exists():
                raise ApiError(Status.ALREADY_EXISTS, f"{place.name} already exists")
            if not name and (self.kind.is_name_unique or self.kind is TENSORBOARD):
                raise invalid(f"{self.kind.field}.displayName is missing")
            if self.kind.is_name_unique and name in taken[parent]:
                # The SDK recognises this status and these words, and then uses the resource with this name.
                raise invalid(f"{self.kind.message} with the display name {name[:200]!r} already exists")
            if self.kind is TIME_SERIES and content.get("valueType") not in VALUE_FIELDS:
                raise invalid(f"valueType: expected {join_or(VALUE_FIELDS)}")
            taken[parent].add(name)
            resource = {"name": place.name, "createTime": now, "updateTime": now}
            planned[place] = resource | {key: content[key] for key in self.kind.kept if key in content}
        return planned

    def _to_resource(self, resource: Resource) -> Resource:
        """Return a resource with the fields that are not in its record."""
        return resource

    def _new_id(self, wanted: str) -> str:
        if (not wanted and not self.kind.is_id_required) or not self.kind.takes_id:
            return record.new_number()
        if not _ID.fullmatch(wanted):
            raise invalid(f"{self.kind.field}Id {wanted[:140]!r}: expected 1 to 128 lower-case letters, digits and '-'")
        return wanted


class Tensorboards(Resources):
    """The tensorboards themselves, one of which is the default of its location."""

    def __init__(self, store: Store) -> None:
        super().__init__(TENSORBOARD, store)

    def create(self, call: Call) -> Resource:
        """Create a tensorboard by an operation; a default one takes the place of the default of its location."""
        with self._store.lock:
            created = super().create(call)
            if created.get("isDefault"):
                siblings = created["name"].rpartition("/")[0] + "/"
                for each in self._store.all(self.kind.collection):
                    is_other = each["name"] != created["name"] and each["name"].startswith(siblings)
                    if is_other and each.pop("isDefault", False):
                        self._store.keep(self.kind.collection, each["name"].rpartition("/")[2], each)
        return finished_operation(call, "CreateTensorboardOperationMetadata", "Tensorboard", created)

    def _to_resource(self, resource: Resource) -> Resource:
        return resource | {"blobStoragePathPrefix": f"{_BLOBS}/{resource['name'].rpartition('/')[2]}"}
