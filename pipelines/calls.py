"""Errors of calls to Vertex AI, on one line: the cause, what to do, and what may exist if an answer was lost."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from localvertex_base.userinput.spelling import on_one_line
from pipelines.vertex import LOG_IN, Location

_FROM_LOCAL = "localvertex.client.init"
"""A part of the refusal of `localvertex serve`."""


class CallFailed(Exception):
    """The service refused a call or could not be reached; the message is one line that begins with the cause."""


@contextmanager
def calls(location: Location, *, if_lost: str = "") -> Iterator[None]:
    """Turn errors of calls into one line.

    Args:
        location: Location of the calls.
        if_lost: What may exist, and how to look, if the request may have arrived and its answer was lost.

    Raises:
        CallFailed: The message contains the cause, what to do, and the service's message.
    """
    import requests
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth
    from google.protobuf.json_format import ParseError

    try:
        yield
    except (api.GoogleAPICallError, api.RetryError, auth.GoogleAuthError, requests.RequestException) as error:
        cause = (error.cause or error) if isinstance(error, api.RetryError) else error
        raise _failed(cause, _explained(cause, location), if_lost) from None
    except (ParseError, UnicodeDecodeError) as error:
        raise _failed(error, _not_json(location, "", _unreadable(error)), if_lost) from None
    except AttributeError as error:
        # google.api_core expects that an error's JSON is an object of objects.
        if error.name != "get" or isinstance(error.obj, dict):
            raise
        raise _failed(error, _not_json(location, "", f"the error {_found(str(error.obj))}"), if_lost) from None


def created_name(created: Any, location: Location, *, if_lost: str) -> str:
    """Return the resource name of what a call created or updated.

    Raises:
        CallFailed: The answer has no name, so it is not from the API (its clients ignore unknown fields).
    """
    if name := str(created.name):
        return name
    raise CallFailed(f"{_not_json(location, '', 'other JSON')}; {if_lost}")


def _failed(error: BaseException, message: str, if_lost: str) -> CallFailed:
    return CallFailed(f"{message}; {if_lost}" if if_lost and _may_have_arrived(error) else message)


def _may_have_arrived(error: BaseException) -> bool:
    """Whether the service may have executed the request without a confirmed answer."""
    import requests
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    if isinstance(error, api.GoogleAPICallError):
        return isinstance(error, api.ServerError)
    never_sent = (requests.exceptions.ConnectTimeout, requests.exceptions.ProxyError, requests.exceptions.SSLError)
    if isinstance(error, (auth.GoogleAuthError, *never_sent)):
        return False
    # Only an error before the connection was open has a reason, e.g. that it was refused.
    return not (isinstance(error, requests.ConnectionError) and error.args and hasattr(error.args[0], "reason"))


def _explained(error: BaseException, location: Location) -> str:
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    if isinstance(error, auth.RefreshError) and location.is_local:
        return on_one_line(error)
    if isinstance(error, auth.RefreshError):
        return f"the credentials are no longer valid: run `{LOG_IN}` again ({on_one_line(error)})"
    if isinstance(error, auth.GoogleAuthError) and not isinstance(error, auth.TransportError):
        return f"the credentials were not accepted: run `{LOG_IN}` ({on_one_line(error)})"
    if not isinstance(error, api.GoogleAPICallError):
        if _may_have_arrived(error):
            return f"the answer of {location.url} was lost: {_reason(error)}"
        return f"cannot reach {location.url}: {_reason(error)}; is the network up{_server_hint(location)}?"
    # The REST transport puts method and address before the service's message.
    raw = re.sub(r"^[A-Z]+ https?://\S+: ", "", str(error.message))
    if raw.lstrip().startswith("<"):
        return _not_json(location, f"{error.code} ", _found(raw))
    return _refused(error, raw, location)


def _refused(error: Any, raw: str, location: Location) -> str:
    """Return the line for an error that the service itself reports."""
    from google.api_core import exceptions as api

    text = on_one_line(raw)
    if isinstance(error, api.Unauthorized):
        return f"the credentials were not accepted: run `{LOG_IN}` ({text})"
    if (isinstance(error, api.Forbidden) and "has not been used" in text) or "SERVICE_DISABLED" in text:
        enable = f"gcloud services enable aiplatform.googleapis.com --project={location.project}"
        return f"the Vertex AI API is not enabled in {location.project}: run `{enable}` ({text})"
    if isinstance(error, api.Forbidden) and location.is_local and _FROM_LOCAL in text:
        return (
            f"{location.url} does not accept the token of the work directory {location.work_dir}; add --work-dir with "
            "the folder of the server, and look whether `python -m localvertex serve` runs there as you"
        )
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


def _unreadable(error: ValueError) -> str:
    """Return what was found instead of the answer of a successful call."""
    if isinstance(error, UnicodeDecodeError):
        return repr(error.object[:80])
    text = getattr(error.__cause__, "doc", None)
    return "other JSON" if text is None else _found(text)


def _found(body: str) -> str:
    title = re.search(r"<title[^>]*>([^<]*)", body, re.IGNORECASE)
    return f"an HTML page ({on_one_line(title[1], 80)!r})" if title else repr(on_one_line(body, 80))


def _not_json(location: Location, how: str, found: str) -> str:
    """Return the line for an answer that does not come from the API."""
    expected = "instead of the API's JSON; is a proxy or a captive portal in between"
    return f"{location.url} answered {how}with {found} {expected}{_server_hint(location)}?"


def _reason(error: BaseException) -> str:
    """Return the innermost reason of nested HTTP errors, e.g. Connection refused."""
    inner: object = getattr(error.args[0], "reason", error.args[0]) if error.args else error
    while isinstance(inner, BaseException) and inner.args and isinstance(inner.args[-1], BaseException):
        inner = inner.args[-1]
    return on_one_line(inner).rpartition(": ")[2]


def _server_hint(location: Location) -> str:
    return ", and is `python -m localvertex serve` running" if location.is_local else ""
