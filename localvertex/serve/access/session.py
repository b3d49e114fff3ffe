"""The session of a browser: it sends the token of the printed address once, and gets a cookie.

The token is in the fragment of the address. A fragment stays in the browser: it is in no request, log or referrer.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localvertex.serve.access.access import Access

PATH = "/local/session"

_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


def address(url: str, token: str) -> str:
    """Return the address of the console, with a token unless the server needs none."""
    return f"{url}/#token={token}" if token else f"{url}/"


def route(access: Access) -> Route:
    """Return the exchange of the token for a cookie, which requires the token like any call."""

    async def exchange(request: Request) -> Response:
        return Response(status_code=204, headers=_HEADERS | {"Set-Cookie": access.cookie(port=str(request.url.port))})

    return Route(PATH, exchange, methods=["POST"])
