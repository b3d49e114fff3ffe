"""The way to Vertex AI: where it is, who asks, and what a failed call means, in one line.

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

LOOPBACK = ("127.0.0.1", "localhost")
LOCAL_PROJECT = "local-project"
"""Project of `localvertex serve`, which does not ask for one."""

PROJECT_ID = re.compile(r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
"""6 to 30 characters, with the domain in front in old projects of an organisation."""

LOG_IN = "gcloud auth application-default login"


class CallFailed(Exception):
    """A call that the service refused or that did not reach it; the message is one line, the cause first."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """A project in a region, at Google or at `localvertex serve`."""

    project: str
    region: str
    endpoint: str = ""
    """URL of another endpoint, e.g. http://127.0.0.1:8700; empty for Google's of the region."""

    def __post_init__(self) -> None:
        """Refuse what no service could find."""
        if not self.project:
            raise UserError("no project is given; add --project MY-PROJECT or set GOOGLE_CLOUD_PROJECT")
        if not PROJECT_ID.fullmatch(self.project):
            raise UserError(f"--project is {self.project!r}; expected a project id such as my-project-123")
        if not self.region:
            raise UserError("no region is given; add --region, e.g. --region us-central1")
        known_region(load_catalogue(), self.region)
        try:
            urlsplit(self.url).port  # noqa: B018 - it is read here to be refused here
        except ValueError as error:
            raise UserError(f"--endpoint is {self.endpoint!r}; {_line(error)}") from None
        if self.endpoint and not self.is_local and not re.fullmatch(r"https://[a-z0-9.-]+\.googleapis\.com", self.url):
            raise UserError(
                f"--endpoint is {self.endpoint!r}; expected localvertex serve, e.g. http://127.0.0.1:8700, "
                "or an address https://....googleapis.com"
            )

    @property
    def url(self) -> str:
        """Address of the API, without a slash at its end."""
        return self.endpoint.rstrip("/") or f"https://{self.region}-aiplatform.googleapis.com"

    @property
    def is_local(self) -> bool:
        """Whether it is a server on this machine: it is asked without credentials."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname in LOOPBACK

    @property
    def parent(self) -> str:
        """Resource name under which jobs and schedules lie."""
        return f"projects/{self.project}/locations/{self.region}"


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where."""
    where = parser.add_argument_group("where")
    where.add_argument("--project", metavar="P", help="project id (default: the variable GOOGLE_CLOUD_PROJECT)")
    where.add_argument("--region", metavar="R", default="us-central1", help="region of the jobs (%(default)s)")
    where.add_argument(
        "--endpoint", metavar="URL", default="", help="ask `python -m localvertex serve` there instead of Google"
    )


def place_from(options: argparse.Namespace) -> Place:
    """Return the place that the options name.

    Raises:
        UserError: The project is missing, or a value makes no sense.
        UserError: The region is unknown.
    """
    project = options.project or os.environ.get("GOOGLE_CLOUD_PROJECT", "")
    return Place(
        project=project or (LOCAL_PROJECT if options.endpoint else ""), region=options.region, endpoint=options.endpoint
    )


def client(place: Place, name: str) -> Any:
    """Return a client of google-cloud-aiplatform, e.g. "PipelineServiceClient", "ScheduleServiceClient".

    Raises:
        UserError: There are no credentials.
    """
    # What Google's packages tell developers (deprecations, the tries to find a metadata server) is not for our user.
    logging.getLogger("google").addHandler(logging.NullHandler())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.cloud import aiplatform_v1

        options = {"api_endpoint": place.url}
        return getattr(aiplatform_v1, name)(transport="rest", credentials=_credentials(place), client_options=options)


def _credentials(place: Place) -> Any:
    import google.auth
    from google.auth import credentials, exceptions

    if place.is_local:
        return credentials.AnonymousCredentials()  # type: ignore[no-untyped-call]
    try:
        found, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    except exceptions.DefaultCredentialsError as error:
        raise UserError(f"no credentials for Google Cloud: run `{LOG_IN}` ({_line(error)})") from None
    return found


@contextmanager
def calls(place: Place) -> Iterator[None]:
    """Turn what goes wrong in calls into one line.

    Raises:
        CallFailed: With the cause first, then what to do, then the service's own words.
    """
    import requests
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    try:
        yield
    except api.RetryError as error:
        raise CallFailed(_explained(error.cause or error, place)) from None
    except (api.GoogleAPICallError, auth.GoogleAuthError, requests.exceptions.RequestException) as error:
        raise CallFailed(_explained(error, place)) from None


def _explained(error: BaseException, place: Place) -> str:
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    if isinstance(error, auth.RefreshError):
        return f"the credentials are no longer valid: run `{LOG_IN}` again ({_line(error)})"
    if isinstance(error, auth.GoogleAuthError) and not isinstance(error, auth.TransportError):
        return f"the credentials were not accepted: run `{LOG_IN}` ({_line(error)})"
    if not isinstance(error, api.GoogleAPICallError):
        return f"cannot reach {place.url}: {_reason(error)}; is the network up{_started(place)}?"
    # The REST transport puts method and address in front of the words of the service.
    text = _line(re.sub(r"^[A-Z]+ https?://\S+: ", "", str(error.message)))
    if isinstance(error, api.Unauthorized):
        return f"the credentials were not accepted: run `{LOG_IN}` ({text})"
    if (isinstance(error, api.Forbidden) and "has not been used" in text) or "SERVICE_DISABLED" in text:
        enable = f"gcloud services enable aiplatform.googleapis.com --project={place.project}"
        return f"the Vertex AI API is not enabled in {place.project}: run `{enable}` ({text})"
    if isinstance(error, api.Forbidden):
        return f"permission denied in {place.project}: {text}; docs/cloud.md lists the roles that are needed"
    if isinstance(error, api.TooManyRequests):
        return (
            f"quota exceeded in {place.region}: {text}; ask for more under IAM & Admin > Quotas, or take another region"
        )
    if isinstance(error, api.ServerError):
        return f"{place.url} is not available at the moment ({error.code}): {text}; try again later"
    if isinstance(error, api.NotFound):
        return f"not found: {text}"
    return f"refused ({error.code}): {text}"


def _reason(error: BaseException) -> str:
    """Return the last of the reasons that the HTTP libraries wrap into each other, e.g. Connection refused."""
    inner = getattr(error.args[0], "reason", error) if error.args else error
    return _line(inner).rpartition(": ")[2].rstrip("'\")")


def _started(place: Place) -> str:
    return ", and is `python -m localvertex serve` running" if place.is_local else ""


def _line(text: object) -> str:
    return " ".join(str(text).split())[:600]


def message(name: str, body: dict[str, Any]) -> Any:
    """Return JSON as the API has it (camelCase, enums by name) as a message of google-cloud-aiplatform.

    Raises:
        UserError: It is no such message.
    """
    from google.protobuf import json_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.cloud import aiplatform_v1

        kind = getattr(aiplatform_v1, name)
    made = kind.pb()()
    try:
        json_format.ParseDict(body, made)
    except (json_format.ParseError, ValueError, TypeError) as error:
        raise UserError(f"this is no {name} that Vertex AI takes: {_line(error)}") from None
    return kind(made)
