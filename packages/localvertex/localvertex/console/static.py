"""The files of the console's page. They hold no data, so they need no token.

The page loads its files from addresses with a hash of all of them, so that a browser asks for each only once, and never
mixes two versions: all are in memory, as they were when the server started. Addresses of other versions are gone.
"""

import hashlib
import mimetypes

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localvertex.api.rest.guard import PAGE, PAGE_FILES
from localvertex.console.compression import FileResponse, compressed
from localvertex.show.bundle import FOLDER, style

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
"""Allow only files of this server, nothing inline, and nothing for pages of other origins."""

_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}

_INDEX = "index.html"


class _PageFiles:
    def __init__(self) -> None:
        self._files = {str(each.relative_to(FOLDER)): each.read_bytes() for each in sorted(FOLDER.rglob("*.*"))}
        # One request in place of nine.
        self._files["style.css"] = style().encode()
        prefix = f"{hashlib.shake_128(repr(self._files).encode()).hexdigest(8)}/"
        self._prefix, self._etag = prefix, f'"{prefix}"'
        self._files[_INDEX] = self._files[_INDEX].replace(b'"/console/', f'"{PAGE_FILES}{prefix}'.encode())

    def answer(self, request: Request) -> Response:
        """Return a file, 304 if the browser has it, or 404."""
        path = request.path_params.get("path", _INDEX)
        name = path.removeprefix(self._prefix)
        if name not in self._files:
            return Response(status_code=404)
        headers = HEADERS | {"ETag": self._etag} | (_FOREVER if name != path else {})
        if request.headers.get("if-none-match") == self._etag:
            return Response(status_code=304, headers=headers)
        kind = mimetypes.guess_type(name)[0]
        return compressed(FileResponse(self._files[name], headers=headers, media_type=kind), request.headers)


def routes() -> list[Route]:
    """Return the routes of the page's files."""
    answer = _PageFiles().answer
    return [Route(path, answer, methods=["GET"]) for path in (PAGE, f"{PAGE_FILES}{{path:path}}")]
