"""Reading the records of tensorboards and what is in them."""

from pathlib import Path

from localvertex.api.rest.errors import not_found
from localvertex.api.rest.records import Resource
from localvertex.api.rest.store import Damaged, Store
from localvertex.api.tensorboards import points
from localvertex.api.tensorboards.place import Place

VALUE_FIELDS = {"SCALAR": "scalar", "TENSOR": "tensor", "BLOB_SEQUENCE": "blobs"}
"""Type of a time series -> the field of its points that has the value."""


RECORD = {
    **dict.fromkeys(("displayName", "description", "createTime!", "updateTime!"), str),
    "labels": dict,
}
"""The shape of a record that is not damaged."""


def read(store: Store, place: Place) -> Resource:
    """Return a record.

    Raises:
        ApiError: It does not exist.
        Damaged: It cannot be used.
    """
    found = store.read(place.collection, place.id)
    if found is None or found["name"] != place.name:
        raise not_found(place.name)
    return found


def find(store: Store, place: Place) -> Resource:
    """Return a record.

    Raises:
        ApiError: It does not exist or cannot be used.
    """
    try:
        return read(store, place)
    except Damaged as error:
        raise error.api_error(place.name) from None


def check_parent(store: Store, place: Place) -> None:
    """Check that a resource exists; a location always does.

    Raises:
        ApiError: It does not exist or cannot be used.
    """
    if place.ids:
        find(store, place)


def survey(store: Store, parent: Place) -> tuple[list[Resource], dict[Place, str]]:
    """Return the records in a parent, and the reasons why others are damaged."""
    found, damaged = store.survey(parent.children)
    # All locations have the same folder.
    own = [each for each in found if each["name"] == parent.child(each["name"].rpartition("/")[2]).name]
    return own, {parent.child(each): reason for each, reason in damaged.items()}


def points_file(store: Store, series: Place) -> Path:
    """Return the file with the points of a time series."""
    return folder(store, series) / points.FILE


def folder(store: Store, place: Place) -> Path:
    """Return the folder with everything in a resource."""
    return store.path(place.collection, place.id).with_suffix("")


def damaged_resource(place: Place, reason: str) -> Resource:
    """Build the stand-in for a resource whose record is damaged."""
    description = f"its record is damaged ({reason}); delete it"
    return {"name": place.name, "displayName": place.id, "description": description}
