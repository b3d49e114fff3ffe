"""The read-only pages in a browser: an index of everything the server has, and the pages of the runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from localvertex.serve import custom_jobs
from localvertex.serve.api.call import Call, Location
from localvertex.serve.api.store import Store
from localvertex.serve.models import Models
from localvertex.serve.schedules import schedules
from localvertex.show import report
from localvertex.state import runs

_TEMPLATE = "index.html.j2"

_MAX_ROWS = 200
"""The newest rows of each table are shown."""

_MAX_FILE_BYTES = 64 << 20

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""No scripts and no external content, because pages of runs embed what components have written."""


class Pages:
    """The pages of one work directory."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store, self._models, self._work_dir = store, models, store.folder.parent

    @property
    def routes(self) -> list[Route]:
        """The routes of the pages."""
        return [
            Route("/", _served(lambda _: self.index())),
            Route("/runs/{id:id}/{path:path}", _served(lambda request: self.file(**request.path_params))),
        ]

    def index(self) -> Response:
        """Render runs, custom jobs, models and schedules with their states."""
        # The registry belongs to the work directory, so every location shows all of it.
        anywhere = Call(version="v1", location=Location(project="local-project", region="us-central1"))
        page = report.render(
            _TEMPLATE,
            work_dir=self._work_dir,
            runs=[(each.run_dir.name, each.content) for each in runs.find_all(self._work_dir)[:_MAX_ROWS]],
            custom_jobs=self._newest(custom_jobs.COLLECTION),
            schedules=self._newest(schedules.COLLECTION),
            models=self._models.list_all(anywhere)["models"],
        )
        return HTMLResponse(page, headers=_HEADERS)

    def file(self, id: str, path: str) -> Response:
        """Return a file of a run: its page as HTML, everything else as plain text that no browser renders."""
        folder = (self._work_dir / id).resolve()
        found = (folder / path).resolve()
        is_run = folder.parent == self._work_dir.resolve() and (folder / report.FILE).is_file()
        is_hidden = any(part.startswith(".") for part in Path(path).parts)
        # Links are resolved first, because the location of the file itself decides.
        if not is_run or is_hidden or not found.is_relative_to(folder) or not found.is_file():
            return Response(f"the run {id} has no file {path[:300]!r}", 404, _HEADERS, "text/plain")
        if found.stat().st_size > _MAX_FILE_BYTES:
            return Response(
                f"{found} is larger than {_MAX_FILE_BYTES} bytes; open the file itself", 413, _HEADERS, "text/plain"
            )
        kind = "text/html" if found == folder / report.FILE else "text/plain"
        return Response(found.read_bytes(), headers=_HEADERS, media_type=kind)

    def _newest(self, collection: str) -> list[dict[str, Any]]:
        found = sorted(self._store.all(collection), key=lambda each: str(each.get("createTime")), reverse=True)
        return found[:_MAX_ROWS]


def _served(page: Callable[[Request], Response]) -> Any:
    """Build the endpoint of a page, which runs in a thread because it reads files."""

    async def respond(request: Request) -> Response:
        return await run_in_threadpool(page, request)

    return respond
