"""A request to the API whose path, query and body have been read."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex.api.rest.errors import invalid
from localvertex.executors.step_jobs import StepJobs

_MAY_BE_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escape sequence of a surrogate, which protobuf and the disk take in pairs only."""


@dataclass(frozen=True, kw_only=True)
class Location:
    """`projects/P/locations/L`, to which every resource belongs."""

    project: str
    region: str

    @property
    def name(self) -> str:
        """The resource name of the location."""
        return f"projects/{self.project}/locations/{self.region}"

    def child(self, collection: str, resource_id: str) -> str:
        """Return the name of a resource in this location."""
        return f"{self.name}/{collection}/{resource_id}"


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request."""

    location: Location
    resource_id: str = ""
    """The last part of the path, without a version; empty for a whole collection."""
    resource_version: str = ""
    """The version number or alias after an `@`; empty without one."""
    parents: Mapping[str, str] = field(default_factory=dict)
    """The ids before the last one in the path, by their names in the route."""
    query: Mapping[str, str] = field(default_factory=dict)
    repeated: Mapping[str, list[str]] = field(default_factory=dict)
    """All values of each field of the query; `query` has the last one."""
    body: JsonObject = field(default_factory=dict)
    run: str = ""
    """The unique number of the run whose step calls; empty for all other callers."""
    jobs: StepJobs | None = None
    """The jobs that the step may create which calls; None for all other callers."""

    def number(self, name: str, default: int) -> int:
        """Return a count in the query.

        Raises:
            ApiError: It is not a whole number of 0 or more.
        """
        text = self.query.get(name, "")
        if text and not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise invalid(f"{name}: expected a whole number of 0 or more, found {text[:40]!r}")
        return int(text or default)


def content_of(body: bytes) -> JsonObject:
    """Read the body of a request.

    Raises:
        ApiError: It is not a JSON object.
    """
    try:
        content = parse_json(body.decode(), "the body") if body.strip() else {}
        if _MAY_BE_HALF.search(body):
            json.dumps(content, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise invalid("the body is not UTF-8") from None
    except UnicodeEncodeError:
        raise invalid("a text in the body contains half of a character, an unpaired surrogate") from None
    except UserError as error:
        raise invalid(str(error)) from None
    if not isinstance(content, dict):
        raise invalid(f"the body must be a JSON object, found {type(content).__name__}")
    return content
