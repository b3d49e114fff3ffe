"""The files of runs: pages for frames and windows of their own, and everything else as text, image or download."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from localvertex.show import report
from localvertex.show.html import templates
from localvertex.state import record

_MAX_SHOWN_BYTES = 64 << 20

_CHUNK_BYTES = 1 << 20

_NAVIGATION = "<!--navigation-->"
"""Where the page of a run gets links to the console; in a file on its own they would lead nowhere."""

_COMMON = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_PAGE = {"Content-Security-Policy": f"{templates.policy()}; frame-ancestors 'self'", **_COMMON}
"""No script but the one of the pages, by its hash, and no external content: runs embed what components have written."""

_SANDBOX = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    **_COMMON,
}
"""For everything that components have written: no scripts at all, and an origin of its own."""

_TYPES = {
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""What browsers may show as more than text, under the policy of the sandbox."""


class RunFiles:
    """The files below the runs of a work directory.

    Args:
        work_dir: The work directory.
    """

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir

    @property
    def routes(self) -> list[Route]:
        """The folders of the work directory, so that links between files work here, too."""

        async def model(request: Request) -> Response:
            # Pages of runs link to the folder of a model's version.
            parts = request.path_params
            return RedirectResponse(f"/#/models/{parts['id']}/{parts['version']}", 303, _COMMON)

        async def file(request: Request) -> Response:
            return await run_in_threadpool(self._respond, request)

        return [
            Route("/runs/models/{id:id}/{version:id}/", model, methods=["GET"]),
            Route("/runs/{id:id}/{path:path}", file, methods=["GET"]),
        ]

    def _respond(self, request: Request) -> Response:
        run_id, path = request.path_params["id"], request.path_params["path"]
        try:
            found = self._found(run_id, path)
            if "download" in request.query_params and found.is_file():
                return _download(found)
            if found == (self._work_dir / run_id).resolve() / report.FILE:
                return _page(found, run_id, is_framed=request.headers.get("sec-fetch-dest") == "iframe")
            return _shown(found)
        except (OSError, ValueError):  # a null byte, a long name, a loop of links, a file that was just removed
            return Response(f"the run {run_id} has no file {path[:300]!r}", 404, _SANDBOX, "text/plain")

    def _found(self, run_id: str, path: str) -> Path:
        """Return a file or a folder of a run.

        Raises:
            FileNotFoundError: It does not exist, is hidden, or a link leads out of the run.
        """
        folder = (self._work_dir / run_id).resolve()
        found = (folder / path).resolve()
        is_run = folder.parent == self._work_dir.resolve() and (folder / record.FILE).is_file()
        is_hidden = any(part.startswith(".") for part in Path(path).parts)
        # Links are resolved first, because the location of the file itself decides.
        if not is_run or is_hidden or found == folder or not found.is_relative_to(folder) or not found.exists():
            raise FileNotFoundError
        return found


def _page(file: Path, run_id: str, *, is_framed: bool) -> Response:
    """Return the page of a run; in a frame of the console, its links to the console would open in the frame."""
    links = f'<nav><a href="/">All runs</a><a href="/#/runs/{run_id}">This run</a><a href="/#/models">Models</a></nav>'
    page = file.read_text(errors="replace")
    return HTMLResponse(page if is_framed else page.replace(_NAVIGATION, links, 1), headers=_PAGE)


def _shown(found: Path) -> Response:
    """Return a file as its type, if browsers may show it, and the names in a folder."""
    if found.is_dir():
        names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in found.iterdir())
        return Response("\n".join(names).encode(errors="replace"), headers=_SANDBOX, media_type="text/plain")
    if found.stat().st_size > _MAX_SHOWN_BYTES:
        text = f"{found} is larger than {_MAX_SHOWN_BYTES} bytes; add ?download to the address"
        return Response(text.encode(errors="replace"), 413, _SANDBOX, "text/plain")
    return _content(found, _TYPES.get(found.suffix.lower(), "text/plain"), {})


def _download(found: Path) -> Response:
    """Return a file that browsers save."""
    disposition = f"attachment; filename*=UTF-8''{quote(found.name, safe='', errors='replace')}"
    return _content(found, "application/octet-stream", {"Content-Disposition": disposition})


def _content(found: Path, media_type: str, headers: dict[str, str]) -> Response:
    """Return the content of a file, as much as it has now: a log grows while it is sent."""
    if not found.is_file():
        raise FileNotFoundError
    file = found.open("rb")
    size = os.fstat(file.fileno()).st_size
    sent = {**_SANDBOX, **headers, "Content-Length": str(size)}
    return StreamingResponse(_chunks(file, size), headers=sent, media_type=media_type)


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    with file:
        while size and (chunk := file.read(min(size, _CHUNK_BYTES))):
            size -= len(chunk)
            yield chunk
