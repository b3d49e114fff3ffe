"""JSON responses, which can contain whatever a component has written into a record."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from localvertex._base.json_object import JsonObject
from localvertex._base.json_text import encode
from localvertex._base.userinput.errors import UserError
from localvertex.api.rest.errors import ApiError, error_body, invalid, not_written

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Records are neither loaded into pages of other origins nor kept in a browser's cache."""


class JsonResponse(Response):
    """A JSON object; unlike starlette's, it may contain NaN, infinite numbers and unpaired surrogates."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(content, status_code, {**_HEADERS, **(headers or {})})

    def render(self, content: Any) -> bytes:
        """Return the text, in ASCII."""
        return encode(content)


def response_of(call: Callable[[], JsonObject | Response]) -> Response:
    """Return the response of a call, or the error that it raises."""
    try:
        found = call()
        return found if isinstance(found, Response) else JsonResponse(found)
    except ApiError as error:
        refused = error
    except UserError as error:
        refused = invalid(str(error))
    except OSError as error:
        refused = not_written(error)
    code = refused.status.http_code
    return JsonResponse(error_body(code, refused.status.name, str(refused), refused.details), code)
