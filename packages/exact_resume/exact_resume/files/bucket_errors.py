"""Failures of Cloud Storage as OSError with a message that names the remedy."""

import contextlib
import errno
import importlib
import os
import shlex
import sys
from collections.abc import Iterator
from typing import Any

from exact_resume.errors import InputError
from exact_resume.text import on_one_line

_TEMPORARY_STATUSES = (408, 429, 500, 502, 503, 504)


class Replaced(OSError):
    """An object was replaced or removed since it was listed."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ESTALE, "the object was replaced or removed", path)


def check_installed() -> None:
    """Refuse gs:// without its package, which is an extra.

    Raises:
        InputError: It is not installed; the message has the command.
    """
    try:
        importlib.import_module("google.cloud.storage")
    except ModuleNotFoundError:
        command = shlex.join([sys.executable, "-m", "pip", "install", "google-cloud-storage"])
        raise InputError(f"folders on gs:// need google-cloud-storage; run {command}") from None


@contextlib.contextmanager
def errors_of(path: str) -> Iterator[None]:
    """Turn the failures of requests about a path into OSError; an unknown bucket is the only thing not found.

    Requests about an object handle NotFound themselves, which may mean either of the two.
    """
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (GoogleAPICallError, InvalidResponse) as error:
        raise _of_response(error.response, error, path) from None
    except GoogleAuthError as error:
        raise (_unavailable(on_one_line(error, 300), path) if is_temporary(error) else _not_authorized(path)) from None
    except DataCorruption:
        raise OSError(errno.EIO, "the received content does not match its checksum", path) from None
    except (RequestException, HTTPError, ConnectionError) as error:
        raise _unavailable(on_one_line(error, 300), path) from None


def is_temporary(error: Exception) -> bool:
    """Return whether a later attempt may succeed."""
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError, TransportError
    from google.cloud.storage.exceptions import InvalidResponse
    from requests import exceptions as of_requests
    from urllib3.exceptions import HTTPError

    if isinstance(error, GoogleAPICallError):
        return error.code in _TEMPORARY_STATUSES
    if isinstance(error, InvalidResponse):
        return error.response.status_code in _TEMPORARY_STATUSES
    if isinstance(error, GoogleAuthError):
        return error.retryable or isinstance(error, TransportError)
    lost = (of_requests.ConnectionError, of_requests.Timeout, of_requests.ChunkedEncodingError)
    return isinstance(error, (*lost, HTTPError, ConnectionError))


def missing_bucket(path: str) -> OSError:
    """Return the error for a path in a bucket that does not exist."""
    return OSError(errno.ENXIO, f"bucket {path.split('/')[2]!r} does not exist", path)


def missing_object(path: str) -> FileNotFoundError:
    """Return the error for an object that does not exist."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def invalid(path: str) -> OSError:
    """Return the error for an address that names no object."""
    return OSError(errno.EINVAL, "expected a bucket and a name, gs://BUCKET/NAME", path)


def _of_response(response: Any, error: Exception, path: str) -> OSError:
    status = int(response.status_code) if response is not None else 0
    message, reason = _reported(response)
    message = message or on_one_line(error, 300)
    if status == 401:
        return _not_authorized(path)
    if status == 403 and "quota" in reason.lower():
        return OSError(errno.EDQUOT, message, path)
    if status == 403:
        return PermissionError(errno.EACCES, f"Cloud Storage refused access ({message})", path)
    if status == 404:
        return missing_bucket(path)
    if status in _TEMPORARY_STATUSES:
        return _unavailable(f"HTTP {status}: {message}", path)
    return OSError(errno.EIO, f"Cloud Storage refused the request (HTTP {status}: {message})", path)


def _reported(response: Any) -> tuple[str, str]:
    """Return message and reason of Google's error in JSON; other answers, for example from a proxy, have neither."""
    try:
        error = response.json()["error"]
        return str(error["message"]).rstrip("."), str(error["errors"][0]["reason"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return "", ""


def _not_authorized(path: str) -> OSError:
    hint = "run `gcloud auth application-default login`"
    return PermissionError(errno.EACCES, f"no valid credentials for Cloud Storage ({hint})", path)


def _unavailable(message: str, path: str) -> OSError:
    return OSError(errno.EIO, f"Cloud Storage failed after several attempts ({message})", path)
