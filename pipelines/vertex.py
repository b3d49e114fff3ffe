"""Clients of Vertex AI: project, region and endpoint, credentials and messages; `calls` explains their errors.

The clients are google-cloud-aiplatform's generated ones, imported when a call is made (docs/decisions, 0070).
"""

import argparse
import dataclasses
import os
import re
import warnings
from typing import Any
from urllib.parse import urlsplit

from components import vertex_clients
from components.summary.report import run_page
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line
from localvertex.machines import load_catalogue
from localvertex.machines.commands.options import known_region

_LOOPBACK = ("127.0.0.1", "localhost")
_LOCAL_PROJECT = "local-project"
"""Project of `localvertex serve`, which accepts any."""

_WORK_DIR = "runs"
"""The default of `localvertex serve` as well."""

_PROJECT_ID = re.compile(r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
"""6 to 30 characters; old projects of an organisation have its domain as a prefix."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Location:
    """A project in a region, at Google or at `localvertex serve`."""

    project: str
    region: str
    endpoint: str = ""
    """URL of another endpoint, e.g. http://127.0.0.1:8700; empty for the region's endpoint at Google."""
    work_dir: str = _WORK_DIR
    """Work folder of `localvertex serve`, with its token; unused for Google."""

    def __post_init__(self) -> None:
        """Refuse values that no service can resolve.

        Raises:
            UserError: A value is missing or not valid, or the region is unknown.
        """
        if not self.project:
            raise UserError("no project given; add --project MY-PROJECT or set GOOGLE_CLOUD_PROJECT")
        if not _PROJECT_ID.fullmatch(self.project):
            raise UserError(f"--project is {self.project!r}; expected a project id such as my-project-123")
        if not self.region:
            raise UserError("no region given; add --region, e.g. --region us-central1")
        known_region(load_catalogue(), self.region)
        try:
            urlsplit(self.url).port  # noqa: B018 - reading it validates it
        except ValueError as error:
            raise UserError(f"--endpoint is {self.endpoint!r}; {on_one_line(error)}") from None
        if self.endpoint and not self.is_local and not re.fullmatch(r"https://[a-z0-9.-]+\.googleapis\.com", self.url):
            raise UserError(
                f"--endpoint is {self.endpoint!r}; expected localvertex serve, e.g. http://127.0.0.1:8700, "
                "or an address https://REGION-aiplatform.googleapis.com"
            )

    @property
    def url(self) -> str:
        """URL of the API without a trailing slash."""
        return self.endpoint.rstrip("/") or f"https://{self.region}-aiplatform.googleapis.com"

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine; it gets the token of its work folder and no credentials."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname in _LOOPBACK

    @property
    def parent(self) -> str:
        """Resource name of the parent of jobs and schedules."""
        return f"projects/{self.project}/locations/{self.region}"

    def run_page(self, job_id: str) -> str:
        """Return the URL of the page that shows a pipeline job."""
        if self.is_local:
            return f"{self.url}/"
        return run_page(self.project, self.region, job_id)


def add_location(parser: argparse.ArgumentParser) -> None:
    """Add the options for project, region and endpoint."""
    group = parser.add_argument_group("location")
    group.add_argument("--project", metavar="P", help="project id (default: GOOGLE_CLOUD_PROJECT from the environment)")
    group.add_argument("--region", metavar="R", default="us-central1", help="region of the jobs (%(default)s)")
    group.add_argument(
        "--endpoint",
        metavar="URL",
        default="",
        help="URL of `python -m localvertex serve`, instead of Google's endpoint",
    )
    group.add_argument(
        "--work-dir",
        metavar="D",
        default=_WORK_DIR,
        help="with --endpoint: work folder of that server, which contains its token (./%(default)s)",
    )


def location_from(options: argparse.Namespace) -> Location:
    """Return the location from the options.

    Raises:
        UserError: A value is missing or not valid, or the region is unknown.
    """
    project = options.project or os.environ.get("GOOGLE_CLOUD_PROJECT", "")
    return Location(
        project=project or (_LOCAL_PROJECT if options.endpoint else ""),
        region=options.region,
        endpoint=options.endpoint,
        work_dir=options.work_dir,
    )


def client(location: Location, name: str) -> Any:
    """Return a client of google-cloud-aiplatform, e.g. `PipelineServiceClient` or `ScheduleServiceClient`.

    Raises:
        UserError: There are no credentials.
    """
    if location.is_local:
        from localvertex.client import Credentials

        credentials: Any = Credentials(location.work_dir)
    else:
        credentials = vertex_clients.google_credentials()[0]
    return vertex_clients.make(name, url=location.url, credentials=credentials)


def message(name: str, body: dict[str, Any]) -> Any:
    """Return the API's JSON (camelCase, enums by name) as a message of google-cloud-aiplatform.

    Raises:
        UserError: The JSON does not match the message.
    """
    from google.protobuf import json_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.cloud import aiplatform_v1

        kind = getattr(aiplatform_v1, name)
    parsed = kind.pb()()
    try:
        json_format.ParseDict(body, parsed)
    except (json_format.ParseError, ValueError, TypeError) as error:
        raise UserError(f"not a valid {name}: {on_one_line(error)}") from None
    return kind(parsed)


def as_json(answer: Any) -> dict[str, Any]:
    """Return a message of google-cloud-aiplatform as the API's JSON."""
    from google.protobuf import json_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted: dict[str, Any] = json_format.MessageToDict(type(answer).pb(answer))
    return converted
