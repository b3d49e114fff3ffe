"""tensorboards: those at the top, one of which is the default of its location."""

from typing import Any

from localvertex.api.rest.call import Call
from localvertex.api.rest.operations import TYPES, Operations
from localvertex.api.rest.store import Store
from localvertex.api.tensorboards.place import TENSORBOARD, Place
from localvertex.api.tensorboards.records import Resource
from localvertex.api.tensorboards.resources import Resources

_BLOBS = "localvertex-tensorboards"
"""The bucket of blobs. The service names a bucket of the project, without which the SDK uploads no log."""


class Tensorboards(Resources):
    """The tensorboards of the API; creations and updates are operations."""

    def __init__(self, store: Store, operations: Operations) -> None:
        super().__init__(TENSORBOARD, store, operations, self._shown)

    def create(self, call: Call) -> dict[str, Any]:
        """Create a tensorboard; a default one takes the place of the default of its location."""
        with self._store.lock:
            created = super().create(call)
            self._keep_one_default(created)
        return self._operations.done(call, "CreateTensorboardOperationMetadata", _response(call, created))

    def patch(self, call: Call) -> dict[str, Any]:
        """Change a tensorboard; a new default one takes the place of the default of its location."""
        with self._store.lock:
            changed = super().patch(call)
            self._keep_one_default(changed)
        return self._operations.done(call, "UpdateTensorboardOperationMetadata", _response(call, changed))

    def _keep_one_default(self, changed: Resource) -> None:
        """Make the other tensorboards of the location no default ones, in memory until they can be written."""
        if not changed.get("isDefault"):
            return
        siblings = changed["name"].rpartition("/")[0] + "/"
        for each in self._store.all(self.kind.collection):
            if each.pop("isDefault", False) and each["name"] != changed["name"] and each["name"].startswith(siblings):
                self._store.keep(self.kind.collection, each["name"].rpartition("/")[2], each)

    def _shown(self, place: Place, resource: Resource) -> Resource:
        """Return a tensorboard with the number of its runs and the folder of its blobs."""
        experiments = self._store.ids(place.children)
        num_runs = sum(len(self._store.ids(place.child(each).children)) for each in experiments)
        counted = {"runCount": num_runs} if num_runs else {}
        return resource | counted | {"blobStoragePathPrefix": f"{_BLOBS}/{place.id}"}


def _response(call: Call, tensorboard: Resource) -> dict[str, Any]:
    """Build the result of an operation."""
    return {"@type": f"{TYPES}.{call.version}.Tensorboard"} | tensorboard
