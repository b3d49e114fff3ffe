"""The page at the address that the server prints, which exchanges the token in the fragment for a cookie.

A fragment stays in the browser: it is in no request, no log and no referrer.
"""

import base64
import hashlib

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from localvertex.serve.access.access import Access

PATH = "/open"

_SCRIPT = f"""\
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
const headers = {{"Authorization": "Bearer " + token, "Content-Type": "application/json"}};
fetch("{PATH}", {{method: "POST", headers, body: "{{}}"}}).then(
  (answer) => {{
    if (answer.ok) location.replace("/");
    else document.getElementById("message").textContent =
      "The token in the address is not the one of this server. Open the address that the server printed.";
  }},
  () => {{ document.getElementById("message").textContent = "The server does not answer."; }},
);
"""

_PAGE = f"""\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>localvertex</title></head>
<body><p id="message">Opening ...</p><script>{_SCRIPT}</script></body></html>
"""

_DIGEST = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()

_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; script-src 'sha256-{_DIGEST}'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def address(url: str, token: str) -> str:
    """Return the address for a browser."""
    return f"{url}{PATH}#{token}"


def routes(access: Access) -> list[Route]:
    """Return the page, which everybody may read, and the exchange, which requires the token like any call."""

    async def page(_: Request) -> Response:
        return HTMLResponse(_PAGE, headers=_HEADERS)

    async def exchange(request: Request) -> Response:
        return Response(status_code=204, headers=_HEADERS | {"Set-Cookie": access.cookie(port=str(request.url.port))})

    return [Route(PATH, page, methods=["GET"]), Route(PATH, exchange, methods=["POST"])]
