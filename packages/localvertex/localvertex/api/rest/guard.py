"""Middleware around the whole API that refuses foreign and oversized requests.

The server runs what it is given, and a web page that the user visits can send requests to 127.0.0.1. Hence it accepts
only loopback host names (against DNS rebinding), no requests from other origins, JSON bodies only (which need a CORS
preflight that this server never grants), and bodies of a limited size. Other users of the machine lack the token. They
may have received the cookie of the console, because browsers send it to all ports. Hence it counts only from processes
of the server's user, and changes something only with the origin of the console.
"""

import asyncio
from collections.abc import Awaitable, Callable

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localvertex._base.userinput.reading import MAX_BYTES
from localvertex.api.access import step_access
from localvertex.api.access.access import Access
from localvertex.api.rest import known_methods
from localvertex.api.rest.errors import error_body
from localvertex.processes.network import sockets

MAX_BODY_BYTES = MAX_BYTES + (1 << 20)
"""A pipeline file of the largest size, and the job around it."""

_MAX_DRAINED_BYTES = 16 * MAX_BODY_BYTES
"""A refused body is read up to here, so that its sender sees the response and not a broken connection."""

_UPLOADS, _STORAGE = "/upload/storage/", "/storage/"
"""Requests with a file as their body, of any type; and others of Cloud Storage, of which some have no body."""

_MAX_UPLOAD_BYTES = 128 << 20
"""google-cloud-storage sends parts of up to 100 MiB."""

_FORM_TYPES = ("", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded")
"""Content types that a web page may POST without a preflight request."""

_HOSTS = ("127.0.0.1", "localhost")

_READING = ("GET", "HEAD")

_OWN_SITES = ("none", "same-origin")
"""The console, and addresses that the user has typed or opened."""

PAGE, PAGE_FILES = "/", "/console/"
"""The console's page and what its files begin with. They hold no data, so they need no token."""

_OTHER_USER = "the cookie of the console is accepted only from processes of the user who runs this server"


class Guard:
    """Refuses requests before anything else reads them.

    Args:
        app: The application behind it.
        access: Who may call.
        seconds: How long the next part of a body may take.
    """

    def __init__(self, app: ASGIApp, *, access: Access, seconds: float) -> None:
        self._app, self._access, self._seconds = app, access, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        is_upload = scope["path"].startswith(_UPLOADS)
        limit = _MAX_UPLOAD_BYTES if is_upload else MAX_BODY_BYTES
        # gcsfs continues an upload by POST; no page of others knows the id.
        is_continued = is_upload and b"upload_id=" in scope["query_string"]
        refused = _refusal("PUT" if is_continued else scope["method"], scope["path"], headers)
        is_stranger = refused is None and (refused := await self._stranger(scope, headers)) is not None
        body = b""
        if refused is None or is_stranger:
            # The body of a stranger is read and dropped, so that a program that sends a large one sees the response.
            announced = int(headers.get("content-length") or 0) if refused is None else limit + 1
            try:
                body, num_bytes = await _read_body(receive, announced, self._seconds, limit)
            except ConnectionError:
                # Half a request must have no effect, and there is no client to respond to.
                return None
            except TimeoutError:
                text = f"the rest of the body did not arrive within {self._seconds:g} s; nothing was done"
                closing = JSONResponse(error_body(408, "CANCELLED", text), 408, {"Connection": "close"})
                return await closing(scope, receive, send)
            if refused is None and num_bytes > limit:
                refused = 413, f"the body is larger than {limit} bytes"
        if refused is not None:
            code, text = refused
            status = "PERMISSION_DENIED" if code == 403 else "INVALID_ARGUMENT"
            return await JSONResponse(error_body(code, status, text), code)(scope, receive, send)
        return await self._app(scope, _replay(body, receive), send)

    async def _stranger(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Return HTTP code and reason when a request has neither a token nor the session of a browser, else None."""
        method, path = scope["method"], scope["path"]
        if (
            self._access.allows(headers.get("authorization"))
            or self._access.allows_step(headers.get("authorization"), method, path)
            or (method in _READING and (path == PAGE or path.startswith(PAGE_FILES)))
        ):
            return None
        port = headers.get("host", "").rpartition(":")[2]
        has_session = self._access.is_session(headers.get("cookie"), port=port)
        if not (has_session and _is_from_console(method, headers)):
            if self._access.run_of(headers.get("authorization")) is None:
                return 403, self._access.refusal
            known = await to_thread.run_sync(known_methods.find, method, path)
            return 403, step_access.REFUSAL.format(call=known.name if known else path[:300])
        is_own = await to_thread.run_sync(sockets.is_from_own_user, scope.get("client"), scope.get("server"))
        return None if is_own else (403, _OTHER_USER)


def _is_from_console(method: str, headers: Headers) -> bool:
    """Return whether a browser may send a request with a cookie: to read, or to change something from the console.

    Pages cannot choose these headers. Browsers send a cookie to all ports of a host, even for pages of other ports.
    """
    if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
        return False
    if method in _READING:
        return True
    is_json = headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
    return headers.get("origin") == f"http://{headers.get('host')}" and (is_json or method == "DELETE")


def _refusal(method: str, path: str, headers: Headers) -> tuple[int, str] | None:
    """Return HTTP code and reason when the request is refused by its headers, else None."""
    host = headers.get("host", "")
    if host.rpartition(":")[0] not in _HOSTS and host not in _HOSTS:
        return 403, f"this server answers to the host names {' and '.join(_HOSTS)}, not to {host[:100]!r}"
    origin = headers.get("origin", "")
    if origin and origin != f"http://{host}":
        return 403, f"requests from the web origin {origin[:100]!r} are refused"
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    is_file = path.startswith(_UPLOADS) and (method == "PUT" or content_type not in _FORM_TYPES)
    is_file = is_file or (path.startswith(_STORAGE) and not content_type)
    if method in ("POST", "PATCH", "PUT") and content_type != "application/json" and not is_file:
        return 415, f"expected content type application/json, found {content_type[:100]!r}"
    if not (headers.get("content-length") or "0").isdecimal():
        return 400, "the content length is not a number"
    return None


async def _read_body(receive: Receive, announced: int, seconds: float, limit: int) -> tuple[bytes, int]:
    """Return the body and its size in bytes; a body that is too large is dropped.

    Raises:
        ConnectionError: The connection ended before the body.
        TimeoutError: The next part of the body did not arrive in time.
    """
    chunks: list[bytes] = []
    size, is_kept = 0, announced <= limit
    while size <= _MAX_DRAINED_BYTES:
        async with asyncio.timeout(seconds):
            message = await receive()
        if message["type"] != "http.request":
            raise ConnectionError("the connection ended before the body")
        size += len(message.get("body", b""))
        is_kept = is_kept and size <= limit
        if is_kept:
            chunks.append(message.get("body", b""))
        else:
            chunks.clear()
        if not message.get("more_body", False):
            break
    return b"".join(chunks), max(size, announced)


def _replay(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    """Build a receiver that returns the body that has been read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message
