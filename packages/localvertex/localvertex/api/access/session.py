"""The session of a browser: it sends the token of the printed address once, and gets a cookie.

The token is in the fragment of the address. A fragment stays in the browser: it is in no request, log or referrer.
"""

import shlex
import sys
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localvertex.api.access import token_file
from localvertex.api.access.access import Access

PATH = "/local/session"

_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


def address(url: str, token: str) -> str:
    """Return the address of the console, which a token opens."""
    return f"{url}/#token={token}"


def printed_address(url: str, token: str, work_dir: Path) -> str:
    """Return the address for printing: with the token only on a terminal, because a log is kept."""
    if sys.stdout.isatty():
        return f"\n{address(url, token)}"
    program = shlex.join(["python", "-m", "localvertex", "console", "--work-dir", str(work_dir)])
    return f"{url}/, opened by `{program}`, or with #token= and the text of {token_file.path(work_dir)} after it"


def route(access: Access) -> Route:
    """Return the exchange of the token for a cookie, which requires the token like any call."""

    async def exchange(request: Request) -> Response:
        return Response(status_code=204, headers=_HEADERS | {"Set-Cookie": access.cookie(port=str(request.url.port))})

    return Route(PATH, exchange, methods=["POST"])
