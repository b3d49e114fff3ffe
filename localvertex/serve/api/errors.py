"""Errors as Google's APIs report them: an HTTP code, a status word and a text."""

from enum import Enum
from typing import Any


class Status(Enum):
    """google.rpc.Code: HTTP code, number."""

    INVALID_ARGUMENT = (400, 3)
    FAILED_PRECONDITION = (400, 9)
    PERMISSION_DENIED = (403, 7)
    NOT_FOUND = (404, 5)
    ALREADY_EXISTS = (409, 6)
    ABORTED = (409, 10)
    INTERNAL = (500, 13)
    UNIMPLEMENTED = (501, 12)

    @property
    def http_code(self) -> int:
        """Of the response."""
        return self.value[0]

    @property
    def number(self) -> int:
        """In the `error` field of a resource."""
        return self.value[1]


class ApiError(Exception):
    """A request that is refused."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


def error_body(http_code: int, status: str, message: str) -> dict[str, Any]:
    """The JSON of a refused request."""
    return {"error": {"code": http_code, "message": message, "status": status}}


def not_found(name: str) -> ApiError:
    """There is no such resource."""
    return ApiError(Status.NOT_FOUND, f"{name} is not found")


def invalid(message: str) -> ApiError:
    """The caller has to change the request."""
    return ApiError(Status.INVALID_ARGUMENT, message)
