"""Errors as Google's APIs report them: an HTTP code, a status and a message."""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

from localvertex._base.json_object import JsonObject

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Status(Enum):
    """google.rpc.Code; each value is the HTTP code and the number."""

    CANCELLED = (499, 1)
    INVALID_ARGUMENT = (400, 3)
    FAILED_PRECONDITION = (400, 9)
    PERMISSION_DENIED = (403, 7)
    NOT_FOUND = (404, 5)
    ALREADY_EXISTS = (409, 6)
    RESOURCE_EXHAUSTED = (429, 8)
    """A quota, or a full disk, as google.rpc.Code documents."""
    ABORTED = (409, 10)
    INTERNAL = (500, 13)
    UNIMPLEMENTED = (501, 12)
    UNAVAILABLE = (503, 14)
    DEADLINE_EXCEEDED = (504, 4)

    @property
    def http_code(self) -> int:
        """The HTTP code of the response."""
        return self.value[0]

    @property
    def number(self) -> int:
        """The code in the `error` field of a resource."""
        return self.value[1]


class ApiError(Exception):
    """A refused request.

    Args:
        status: The kind of the refusal.
        message: The reasons in one line.
        details: The reasons one by one: each with its `message`, and the `field` of a form that it belongs to.
    """

    def __init__(self, status: Status, message: str, details: Sequence[dict[str, str]] = ()) -> None:
        super().__init__(message)
        self.status, self.details = status, details


def error_body(http_code: int, status: str, message: str, details: Sequence[dict[str, str]] = ()) -> JsonObject:
    """Build the JSON of a refused request."""
    error = {"code": http_code, "message": message, "status": status}
    return {"error": error | ({"details": [*details]} if details else {})}


def not_found(name: str) -> ApiError:
    """Build the error for a resource that does not exist."""
    return ApiError(Status.NOT_FOUND, f"{name} is not found")


def invalid(message: str) -> ApiError:
    """Build the error for a request that the client has to change."""
    return ApiError(Status.INVALID_ARGUMENT, message)


@contextmanager
def refusing(status: Status, *errors: type[Exception]) -> Iterator[None]:
    """Refuse the request for the text of an error of these types."""
    try:
        yield
    except errors as error:
        raise ApiError(status, str(error)) from None


def rpc_error(status: Status, message: str) -> JsonObject:
    """Build a google.rpc.Status, the `error` field of a resource."""
    return {"code": status.number, "message": message}


def reason_of(error: Exception) -> str:
    """Return why a record or a file is damaged: what reading it has raised."""
    return f"{type(error).__name__}: {str(error)[:200]}"


def is_full(error: OSError) -> bool:
    """Return whether a disk is full."""
    return error.errno in _FULL


def not_written(error: OSError) -> ApiError:
    """Build the error for a request whose effect could not be written to the disk."""
    status = Status.RESOURCE_EXHAUSTED if is_full(error) else Status.INTERNAL
    return ApiError(status, f"the work folder cannot be used: {error.strerror or error}")
