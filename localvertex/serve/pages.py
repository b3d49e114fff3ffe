"""What a person sees at the server's address: a page with everything it has, and the pages of the runs. Read only."""

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

TEMPLATE = "index.html.j2"

MAX_ROWS = 200
"""Of each table, the newest."""

MAX_FILE_BYTES = 64 << 20

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""No scripts, and nothing from elsewhere: pages of runs embed what components have written."""


class Pages:
    """The pages of one work directory."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store, self._models, self._work_dir = store, models, store.folder.parent

    @property
    def routes(self) -> list[Route]:
        """The addresses."""
        return [
            Route("/", served(lambda _: self.index())),
            Route("/runs/{id:id}/{path:path}", served(lambda request: self.file(**request.path_params))),
        ]

    def index(self) -> Response:
        """Runs, custom jobs, models and schedules with their states."""
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        folder = Path(__file__).parent
        environment = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
        # The registry belongs to the work directory: any location shows all of it.
        anywhere = Call(version="v1", location=Location(project="local-project", region="us-central1"))
        page = environment.get_template(TEMPLATE).render(
            work_dir=self._work_dir,
            runs=[(each.run_dir.name, each.content) for each in runs.find_all(self._work_dir)[:MAX_ROWS]],
            custom_jobs=self._newest(custom_jobs.COLLECTION),
            schedules=self._newest(schedules.COLLECTION),
            models=self._models.list_all(anywhere)["models"],
            style=(folder.parent / "run.css").read_text(),
        )
        return HTMLResponse(page, headers=HEADERS)

    def file(self, id: str, path: str) -> Response:
        """A file of a run: its page as HTML, everything else as text, so that no browser takes it for a page."""
        folder = (self._work_dir / id).resolve()
        found = (folder / path).resolve()
        is_run = folder.parent == self._work_dir.resolve() and (folder / report.FILE).is_file()
        is_hidden = any(part.startswith(".") for part in Path(path).parts)
        # Links are followed first: what counts is where the file is.
        if not is_run or is_hidden or not found.is_relative_to(folder) or not found.is_file():
            return Response(f"there is no {path[:300]!r} in the run {id}", 404, HEADERS, "text/plain")
        if found.stat().st_size > MAX_FILE_BYTES:
            return Response(f"{found} has more than {MAX_FILE_BYTES} bytes; open it there", 413, HEADERS, "text/plain")
        kind = "text/html" if found == folder / report.FILE else "text/plain"
        return Response(found.read_bytes(), headers=HEADERS, media_type=kind)

    def _newest(self, collection: str) -> list[dict[str, Any]]:
        found = sorted(self._store.all(collection), key=lambda each: str(each.get("createTime")), reverse=True)
        return found[:MAX_ROWS]


def served(page: Callable[[Request], Response]) -> Any:
    """A page behind an address; it reads files, so in a thread."""

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(page, request)

    return answer
