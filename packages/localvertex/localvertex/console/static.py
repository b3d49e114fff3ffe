"""The files of the console's page. They hold no data, so they need no token."""

import hashlib
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localvertex.api.rest.guard import PAGE, PAGE_FILES

FOLDER = (Path(__file__).parent / "page").resolve()

_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Only files of this server, nothing inline, and nothing for pages of other origins."""


def routes() -> list[Route]:
    """Return the routes of the page's files."""
    return [Route(path, _respond, methods=["GET"]) for path in (PAGE, f"{PAGE_FILES}{{path:path}}")]


async def _respond(request: Request) -> Response:
    name = request.path_params.get("path", "index.html")
    return await run_in_threadpool(_file, name, request.headers.get("if-none-match", ""))


def _file(name: str, known: str) -> Response:
    """Return a file of the page, or 304 if the browser has its newest content."""
    try:
        path = (FOLDER / name).resolve()
        is_known = path.is_relative_to(FOLDER) and path.suffix in _TYPES
        content = path.read_bytes() if is_known else None
    except (OSError, ValueError):  # a folder, a null byte, a long name
        content = None
    if content is None:
        return Response("not found", 404, HEADERS, "text/plain")
    tag = f'"{hashlib.sha256(content).hexdigest()}"'
    if known == tag:
        return Response(status_code=304, headers=HEADERS | {"ETag": tag})
    return Response(content, headers=HEADERS | {"ETag": tag}, media_type=_TYPES[path.suffix])
