"""Calls to Vertex AI: project, region and endpoint, credentials, and one-line errors.

The clients are google-cloud-aiplatform's generated ones, imported when a call is made (docs/decisions/0070-submit.md).
"""

import argparse
import dataclasses
import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from accelerators import load_catalogue
from accelerators.commands.options import known_region
from userinput.errors import UserError

_LOOPBACK = ("127.0.0.1", "localhost")
_LOCAL_PROJECT = "local-project"
"""Project of `localvertex serve`, which accepts any."""

_PROJECT_ID = re.compile(r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
"""6 to 30 characters; old projects of an organisation have its domain as a prefix."""

_LOG_IN = "gcloud auth application-default login"


class CallFailed(Exception):
    """The service refused a call or could not be reached; the message is one line that begins with the cause."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Location:
    """A project in a region, at Google or at `localvertex serve`."""

    project: str
    region: str
    endpoint: str = ""
    """URL of another endpoint, e.g. http://127.0.0.1:8700; empty for the region's endpoint at Google."""

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
            raise UserError(f"--endpoint is {self.endpoint!r}; {_line(error)}") from None
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
        """Whether the endpoint is on this machine and needs no credentials."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname in _LOOPBACK

    @property
    def parent(self) -> str:
        """Resource name of the parent of jobs and schedules."""
        return f"projects/{self.project}/locations/{self.region}"


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
    )


def client(location: Location, name: str) -> Any:
    """Return a client of google-cloud-aiplatform, e.g. `PipelineServiceClient` or `ScheduleServiceClient`.

    Raises:
        UserError: There are no credentials.
    """
    # Google's packages log deprecations and attempts to find a metadata server, which a user cannot act on.
    logging.getLogger("google").addHandler(logging.NullHandler())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.cloud import aiplatform_v1

        options = {"api_endpoint": location.url}
        return getattr(aiplatform_v1, name)(
            transport="rest", credentials=_credentials(location), client_options=options
        )


def _credentials(location: Location) -> Any:
    import google.auth
    from google.auth import credentials, exceptions

    if location.is_local:
        return credentials.AnonymousCredentials()  # type: ignore[no-untyped-call]
    try:
        found, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    except exceptions.DefaultCredentialsError as error:
        raise UserError(f"no credentials for Google Cloud: run `{_LOG_IN}` ({_line(error)})") from None
    return found


@contextmanager
def calls(location: Location) -> Iterator[None]:
    """Turn errors of calls into one line.

    Raises:
        CallFailed: The message has the cause, then what to do, then the service's message.
    """
    import requests
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    try:
        yield
    except api.RetryError as error:
        raise CallFailed(_explained(error.cause or error, location)) from None
    except (api.GoogleAPICallError, auth.GoogleAuthError, requests.exceptions.RequestException) as error:
        raise CallFailed(_explained(error, location)) from None


def _explained(error: BaseException, location: Location) -> str:
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    if isinstance(error, auth.RefreshError):
        return f"the credentials are no longer valid: run `{_LOG_IN}` again ({_line(error)})"
    if isinstance(error, auth.GoogleAuthError) and not isinstance(error, auth.TransportError):
        return f"the credentials were not accepted: run `{_LOG_IN}` ({_line(error)})"
    if not isinstance(error, api.GoogleAPICallError):
        return f"cannot reach {location.url}: {_reason(error)}; is the network up{_server_hint(location)}?"
    # The REST transport puts method and address before the service's message.
    text = _line(re.sub(r"^[A-Z]+ https?://\S+: ", "", str(error.message)))
    if isinstance(error, api.Unauthorized):
        return f"the credentials were not accepted: run `{_LOG_IN}` ({text})"
    if (isinstance(error, api.Forbidden) and "has not been used" in text) or "SERVICE_DISABLED" in text:
        enable = f"gcloud services enable aiplatform.googleapis.com --project={location.project}"
        return f"the Vertex AI API is not enabled in {location.project}: run `{enable}` ({text})"
    if isinstance(error, api.Forbidden):
        return f"permission denied in {location.project}: {text}; docs/cloud.md lists the required roles"
    if isinstance(error, api.TooManyRequests):
        advice = "request more under IAM & Admin > Quotas, or use another region"
        return f"quota exceeded in {location.region}: {text}; {advice}"
    if isinstance(error, api.ServerError):
        return f"{location.url} is temporarily unavailable ({error.code}): {text}; try again later"
    if isinstance(error, api.NotFound):
        return f"not found: {text}"
    return f"refused ({error.code}): {text}"


def _reason(error: BaseException) -> str:
    """Return the innermost reason of nested HTTP errors, e.g. Connection refused."""
    inner = getattr(error.args[0], "reason", error) if error.args else error
    return _line(inner).rpartition(": ")[2].rstrip("'\")")


def _server_hint(location: Location) -> str:
    return ", and is `python -m localvertex serve` running" if location.is_local else ""


def _line(text: object) -> str:
    return " ".join(str(text).split())[:600]


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
        raise UserError(f"not a valid {name}: {_line(error)}") from None
    return kind(parsed)
