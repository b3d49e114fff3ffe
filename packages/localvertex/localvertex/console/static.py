"""The files of the console's page. They hold no data, so they need no token."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from localvertex.api.rest.guard import PAGE, PAGE_FILES
from localvertex.show.bundle import FOLDER

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


class _PageFiles(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a file, or 304 if the browser has its newest content."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(HEADERS)
        return response


def routes() -> list[Route]:
    """Return the routes of the page's files."""
    files = _PageFiles(directory=FOLDER)

    async def file(request: Request) -> Response:
        return await files.get_response(request.path_params.get("path", "index.html"), request.scope)

    return [Route(path, file, methods=["GET"]) for path in (PAGE, f"{PAGE_FILES}{{path:path}}")]
