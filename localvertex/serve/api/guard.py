"""Who may ask, and how much: middleware around the whole API.

The server runs what it is given, and a web page that the user visits can send requests to 127.0.0.1. So: only our own
host names (against names that an attacker makes point here), no request from a foreign page, JSON bodies only (a page
cannot send them without asking first, and nobody answers that question here), and bodies of a limited size.
"""

from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compiled.load import MAX_FILE_BYTES
from localvertex.serve.api.errors import error_body

MAX_BODY_BYTES = MAX_FILE_BYTES + (1 << 20)
"""A pipeline of the largest size, and the job around it."""

MAX_DRAINED_BYTES = 16 * MAX_BODY_BYTES
"""A refused body is read on up to here, so that its sender sees the answer and not a broken connection."""

HOSTS = ("127.0.0.1", "localhost")


class Guard:
    """Refuses a request before anything reads it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        refused = refusal(scope["method"], headers)
        body = b""
        if refused is None:
            body, num_bytes = await read_body(receive, int(headers.get("content-length") or 0))
            if num_bytes > MAX_BODY_BYTES:
                refused = 413, f"the body has more than {MAX_BODY_BYTES} bytes"
        if refused is not None:
            code, text = refused
            status = "PERMISSION_DENIED" if code == 403 else "INVALID_ARGUMENT"
            return await JSONResponse(error_body(code, status, text), code)(scope, receive, send)
        return await self._app(scope, replay(body, receive), send)


def refusal(method: str, headers: Headers) -> tuple[int, str] | None:
    """HTTP code and reason when the request is not for us."""
    host = headers.get("host", "")
    if host.rpartition(":")[0] not in HOSTS and host not in HOSTS:
        return 403, f"this server is {' or '.join(HOSTS)}, not {host[:100]!r}"
    origin = headers.get("origin", "")
    if origin and origin != f"http://{host}":
        return 403, f"requests from the web page {origin[:100]!r} are not answered"
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method in ("POST", "PATCH", "PUT") and content_type != "application/json":
        return 415, f"content type application/json expected, found {content_type[:100]!r}"
    if not (headers.get("content-length") or "0").isdecimal():
        return 400, "the content length is no number"
    return None


async def read_body(receive: Receive, announced: int) -> tuple[bytes, int]:
    """The body and its size; of one that is too large nothing is kept."""
    chunks: list[bytes] = []
    size, is_kept = 0, announced <= MAX_BODY_BYTES
    while size <= MAX_DRAINED_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            break
        size += len(message.get("body", b""))
        is_kept = is_kept and size <= MAX_BODY_BYTES
        if is_kept:
            chunks.append(message.get("body", b""))
        else:
            chunks.clear()
        if not message.get("more_body", False):
            break
    return b"".join(chunks), max(size, announced)


def replay(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    """Gives the application the body that was read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message
