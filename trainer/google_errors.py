"""Failed calls of Google's clients, recognised by code and message without importing Google's packages.

A client raises errors of google.api_core (the service's answer), google.auth (the credentials), requests (the
connection) and protobuf (an answer that does not come from the API).
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from localvertex._base.userinput.spelling import on_one_line

_CAUSES = {401: "the credentials were not accepted", 403: "permission denied", 404: "not found", 429: "quota exceeded"}
_TEMPORARY = (0, 408, 409, 429, 499, 500, 502, 503, 504)
_NEVER_SENT = {"requests.ConnectTimeout", "requests.ProxyError", "requests.SSLError"}


@dataclass(frozen=True, kw_only=True)
class GoogleError:
    """Why a call failed."""

    code: int
    """HTTP status code; 0 without an answer of the API."""
    message: str
    """The service's message, or a description without it, on one line."""
    may_have_arrived: bool
    """Whether the service may have executed the request without a confirmed answer."""

    @property
    def is_temporary(self) -> bool:
        """Whether the same call may succeed later."""
        return self.code in _TEMPORARY

    def line(self, service: str = "the service") -> str:
        """Return the cause with the message, for example `permission denied (...)`."""
        other = f"{service} is not available" if self.is_temporary else f"{service} refused it"
        return f"{_CAUSES.get(self.code, other)} ({self.message})"


def google_error(error: Any) -> GoogleError | None:
    """Return the failure of a call, or None for an error of something else."""
    names = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(error).__mro__}
    if "google.RetryError" in names and error.cause:
        return google_error(error.cause)
    if "google.GoogleAPICallError" in names:
        # The REST transport puts method and address before the service's message.
        text = re.sub(r"^[A-Z]+ https?://\S+: ", "", str(error.message))
        code, is_lost = int(error.code or 0), int(error.code or 500) >= 500
        if text.lstrip().startswith("<"):
            return GoogleError(code=0, message=not_json(_find(text), f"{code} "), may_have_arrived=is_lost)
        return GoogleError(code=code, message=on_one_line(text), may_have_arrived=is_lost)
    if "google.GoogleAuthError" in names:
        code = 0 if "google.TransportError" in names else 401
        return GoogleError(code=code, message=on_one_line(error), may_have_arrived=False)
    if "requests.RequestException" in names:
        # Only an error before the connection was open has a reason, for example that it was refused.
        is_refused = "requests.ConnectionError" in names and bool(error.args) and hasattr(error.args[0], "reason")
        is_sent = not is_refused and not names & _NEVER_SENT
        text = f"{'the answer was lost' if is_sent else 'it cannot be reached'}: {_reason(error)}"
        return GoogleError(code=0, message=text, may_have_arrived=is_sent)
    if "google.ParseError" in names:
        body = getattr(error.__cause__, "doc", None)
        return GoogleError(
            code=0, message=not_json("other JSON" if body is None else _find(body)), may_have_arrived=True
        )
    if isinstance(error, UnicodeDecodeError):
        return GoogleError(code=0, message=not_json(repr(error.object[:80])), may_have_arrived=True)
    if isinstance(error, AttributeError) and error.name == "get" and isinstance(error.obj, str | list):
        # google.api_core expects that an error's JSON is an object of objects.
        return GoogleError(code=0, message=not_json(f"the error {_find(str(error.obj))}"), may_have_arrived=True)
    return None


def is_temporary(error: BaseException) -> bool:
    """Return whether an error is of a call that may succeed later."""
    found = google_error(error)
    return found is not None and found.is_temporary


@contextmanager
def google_errors(explained: Callable[[GoogleError], Exception]) -> Iterator[None]:
    """Raise `explained` in place of the error of a call."""
    try:
        yield
    except Exception as error:
        if (found := google_error(error)) is None:
            raise
        raise explained(found) from None


def not_json(found: str, how: str = "") -> str:
    """Return the message for an answer that does not come from the API."""
    return f"it answered {how}with {found} instead of the API's JSON"


def _find(body: str) -> str:
    title = re.search(r"<title[^>]*>([^<]*)", body, re.IGNORECASE)
    return f"an HTML page ({on_one_line(title[1], 80)!r})" if title else repr(on_one_line(body, 80))


def _reason(error: BaseException) -> str:
    """Return the innermost reason of nested HTTP errors, for example `Connection refused`."""
    inner: object = getattr(error.args[0], "reason", error.args[0]) if error.args else error
    while isinstance(inner, BaseException) and inner.args and isinstance(inner.args[-1], BaseException):
        inner = inner.args[-1]
    return on_one_line(inner).rpartition(": ")[2]
