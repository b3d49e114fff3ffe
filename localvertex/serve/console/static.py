"""The files of the console's page. They hold no data, so they need no token."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

FOLDER = Path(__file__).parent / "page"

INDEX, PREFIX = "/", "/console/"

_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Only files of this server, and nothing inline."""


def is_static(path: str) -> bool:
    """Return whether a path is one of the page's files, which anybody may read."""
    return path == INDEX or path.startswith(PREFIX)


def routes() -> list[Route]:
    """Return the routes of the page's files."""
    return [
        Route(INDEX, lambda _: _file("index.html"), methods=["GET"]),
        Route(f"{PREFIX}{{path:path}}", lambda request: _requested(request), methods=["GET"]),
    ]


def _requested(request: Request) -> Response:
    return _file(request.path_params["path"])


def _file(name: str) -> Response:
    """Return a file of the package."""
    path = (FOLDER / name).resolve()
    if not path.is_relative_to(FOLDER) or path.suffix not in _TYPES or not path.is_file():
        return Response("not found", 404, HEADERS, "text/plain")
    return FileResponse(path, headers=HEADERS, media_type=_TYPES[path.suffix])
