"""A request to the API once its address, query and body have been read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localvertex.serve.api.errors import invalid


@dataclass(frozen=True, kw_only=True)
class Location:
    """`projects/P/locations/L`, which every resource belongs to."""

    project: str
    region: str

    @property
    def name(self) -> str:
        """Its resource name."""
        return f"projects/{self.project}/locations/{self.region}"

    def child(self, collection: str, resource_id: str) -> str:
        """The name of a resource in it."""
        return f"{self.name}/{collection}/{resource_id}"


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request."""

    version: str
    """v1 or v1beta1."""
    location: Location
    resource_id: str = ""
    """Last part of the address, without a version; empty for a whole collection."""
    resource_version: str = ""
    """What followed an `@`."""
    query: Mapping[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)

    def number(self, name: str, default: int) -> int:
        """A count in the query.

        Raises:
            ApiError: it is not a whole number, 0 or more.
        """
        text = self.query.get(name, "")
        if text and not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise invalid(f"{name}: a whole number, 0 or more, expected, found {text[:40]!r}")
        return int(text or default)
