"""The records of endpoints: `<work-dir>/endpoints/<id>/endpoint.json`, each replaced as a whole.

They change under the lock of the registry, so that `run` and `serve` can share a work folder.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localvertex._base.userinput import atomic_write
from localvertex._base.userinput.shape import check
from localvertex.api.models.registered import patience
from localvertex.api.rest.errors import not_found, reason_of
from localvertex.api.rest.records import Resource
from localvertex.api.rest.store import ID, UNUSABLE, Damaged
from localvertex.store.models.deployed import FILE, FOLDER
from localvertex.store.registry_lock import locked

_RECORD = {
    **dict.fromkeys(("name!", "displayName!", "createTime!", "updateTime!"), str),
    "deployedModels": [
        {
            "id!": ID,
            **dict.fromkeys(("model!", "modelVersionId!", "createTime!"), str),
            "dedicatedResources": {"machineSpec": {"acceleratorCount": int}},
        }
    ],
    "trafficSplit!": {str: range(101)},
    "labels": dict,
}
"""The shape of a record that is not damaged; the split has percentages."""


class EndpointRecords:
    """The endpoints of a work folder, as Endpoint messages in the API's JSON."""

    def __init__(self, work_dir: Path) -> None:
        self.work_dir, self._folder = work_dir, work_dir / FOLDER

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock from a read to the write that depends on it.

        Raises:
            ApiError: Another process keeps it for too long.
        """
        with locked(self.work_dir, patience()):
            yield

    def folder(self, endpoint_id: str) -> Path:
        """Return the folder of an endpoint, which also contains the logs of its processes."""
        return self._folder / endpoint_id

    @property
    def ids(self) -> list[str]:
        """The ids of all endpoints."""
        if not self._folder.is_dir():
            return []
        return sorted(path.parent.name for path in self._folder.glob(f"*/{FILE}") if ID.fullmatch(path.parent.name))

    def read(self, endpoint_id: str) -> Resource | None:
        """Return an endpoint, None when it does not exist.

        Raises:
            Damaged: Its record cannot be used.
        """
        if not ID.fullmatch(endpoint_id):
            return None
        try:
            content: Resource = json.loads((self.folder(endpoint_id) / FILE).read_text())
            _check(content, endpoint_id)
        except FileNotFoundError:
            return None
        except (OSError, RecursionError, *UNUSABLE) as error:
            raise Damaged(reason_of(error)) from None
        return content

    def find(self, name: str) -> Resource:
        """Return the endpoint with a resource name.

        Raises:
            ApiError: It does not exist, or its record cannot be used.
        """
        try:
            content = self.read(name.rpartition("/")[2])
        except Damaged as error:
            raise error.api_error(name) from None
        if content is None or content["name"] != name:
            raise not_found(name)
        return content

    def write(self, endpoint_id: str, content: Resource) -> None:
        """Create or replace an endpoint."""
        self.folder(endpoint_id).mkdir(parents=True, exist_ok=True)
        atomic_write.write_text(self.folder(endpoint_id) / FILE, json.dumps(content, indent=1))

    def remove(self, endpoint_id: str) -> None:
        """Delete an endpoint with its logs."""
        (self.folder(endpoint_id) / FILE).unlink(missing_ok=True)
        shutil.rmtree(self.folder(endpoint_id), ignore_errors=True)


def _check(content: Resource, endpoint_id: str) -> None:
    """Raise one of `UNUSABLE` when a record is damaged."""
    check(content, _RECORD)
    if content["name"].split("/")[-2:] != [FOLDER, endpoint_id]:
        raise ValueError(f"it belongs to {content['name'][:200]!r}")
    if content["trafficSplit"].keys() - {each["id"] for each in content.get("deployedModels", [])}:
        raise ValueError("trafficSplit names a model that is not deployed")
