"""Errors of calls to Vertex AI, on one line: the cause, what to do, and what may exist if an answer was lost."""

from contextlib import AbstractContextManager
from typing import Any

from components.vertex_clients import LOG_IN
from pipelines.vertex import Location
from trainer.google_errors import GoogleError, google_errors, not_json

_FROM_LOCAL = "localvertex.client.init"
"""A part of the refusal of `localvertex serve`."""


class CallFailed(Exception):
    """The service refused a call or could not be reached; the message is one line that begins with the cause."""


def calls(location: Location, *, if_lost: str = "") -> AbstractContextManager[None]:
    """Return a context that turns errors of calls into `CallFailed`.

    Args:
        location: Location of the calls.
        if_lost: Advice if the answer was lost and the request may have arrived: what may exist, and how to look.
    """

    def failed(error: GoogleError) -> CallFailed:
        lost = f"; {if_lost}" if if_lost and error.may_have_arrived else ""
        return CallFailed(f"{_explain(error, location)}{lost}")

    return google_errors(failed)


def created_name(created: Any, location: Location, *, if_lost: str) -> str:
    """Return the resource name of what a call created or updated.

    Raises:
        CallFailed: The answer has no name, so it is not from the API (its clients ignore unknown fields).
    """
    if name := str(created.name):
        return name
    raise CallFailed(f"{location.url} is not available ({not_json('other JSON')}); {if_lost}")


def _explain(error: GoogleError, location: Location) -> str:
    """Return the line for an error, with what to do."""
    text = error.message
    if (error.code == 403 and "has not been used" in text) or "SERVICE_DISABLED" in text:
        enable = f"gcloud services enable aiplatform.googleapis.com --project={location.project}"
        return f"the Vertex AI API is not enabled in {location.project}: run `{enable}` ({text})"
    if error.code == 403 and location.is_local and _FROM_LOCAL in text:
        return (
            f"{location.url} does not accept the token of the work folder {location.work_dir}; add --work-dir with "
            "the folder of the server, and look whether `python -m localvertex serve` runs there as you"
        )
    server = ", and is `python -m localvertex serve` running" if location.is_local else ""
    advice = {
        0: f"; is the network up, without a proxy or a captive portal in between{server}?",
        401: "" if location.is_local else f"; run `{LOG_IN}`",
        403: f"; docs/cloud.md lists the roles required in {location.project}",
        429: f"; request more in {location.region} under IAM & Admin > Quotas, or use another region",
    }
    return error.line(location.url) + advice.get(error.code, "; try again later" if error.is_temporary else "")
