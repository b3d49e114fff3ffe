"""The registry of the work folder as requests name its models and versions."""

import time
from collections.abc import Callable
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found
from localvertex.api.rest.store import ID
from localvertex.store.model_versions import ModelVersions
from localvertex.store.models.reading import DEFAULT

COLLECTION = "models"

_WAIT_SECONDS = 60.0
"""How long a request waits for another process that changes the registry."""


class Registered:
    """The models of a work folder."""

    def __init__(self, work_dir: Path) -> None:
        self.work_dir = work_dir

    @property
    def ids(self) -> list[str]:
        """The names of all folders that may contain a model."""
        folder = self.work_dir / COLLECTION
        return [each.name for each in folder.iterdir()] if folder.is_dir() else []

    def versions(self, model_id: str) -> ModelVersions:
        """Return the versions of a model, which may not exist."""
        return ModelVersions.of(self.work_dir, model_id, patience())

    def find(self, call: Call, model_id: str = "") -> ModelVersions:
        """Return the versions of the model that a request names.

        Raises:
            ApiError: It does not exist.
        """
        versions = self.versions(model_id or call.resource_id)
        if not versions.numbers:
            raise not_found(call.location.child(COLLECTION, versions.folder.name))
        return versions

    def named(self, location: Location, name: str, field: str) -> tuple[str, str, JsonObject]:
        """Return the id, the number and the content of the version that a field names.

        Raises:
            ApiError: It is not the name of a model of the location, or there is no such version, or it is damaged.
        """
        prefix = location.child(COLLECTION, "")
        model_id, _, version = name.removeprefix(prefix).partition("@")
        if not name.startswith(prefix) or not ID.fullmatch(model_id):
            raise invalid(f"{field} {name[:200]!r}: expected {prefix}ID, with an optional @VERSION")
        versions = self.versions(model_id)
        try:
            found = versions.number(version or DEFAULT)
            return model_id, found, versions.content(found)
        except LookupError:
            raise not_found(name) from None
        except (ValueError, OSError) as error:
            raise ApiError(Status.FAILED_PRECONDITION, str(error)) from None


def number_to_change(versions: ModelVersions, name: str) -> str:
    """Return the version with this number or alias, for a change.

    Raises:
        ApiError: The model has no such version, or its aliases are damaged.
    """
    try:
        return number(versions, name)
    except ValueError as error:
        text = f"the aliases in {versions.folder} are damaged ({error}); delete the model, or repair the file"
        raise ApiError(Status.FAILED_PRECONDITION, text) from None


def number(versions: ModelVersions, name: str) -> str:
    """Return the version with this number or alias, see `ModelVersions.number`.

    Raises:
        ApiError: The model has no such version.
        ValueError: Its aliases are damaged.
    """
    try:
        return versions.number(name)
    except LookupError:
        raise not_found(f"version {name!r} of the model {versions.folder.name}") from None


def patience() -> Callable[[], None]:
    """Return a function that gives up when it is called for too long."""
    calls: list[float] = []

    def check() -> None:
        calls.append(time.monotonic())
        if calls[-1] - calls[0] > _WAIT_SECONDS:
            text = f"another process has been changing the registry for {_WAIT_SECONDS:g} s; try again"
            raise ApiError(Status.ABORTED, text)
        del calls[1:]

    return check
