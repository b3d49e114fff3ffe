"""The read-only pages in a browser: an index of everything the server has, and the pages of runs and models."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from localvertex.serve.api.call import Call, Location
from localvertex.serve.api.records import StoredRecords
from localvertex.serve.api.store import UNUSABLE, Store
from localvertex.serve.custom_jobs import CustomJobs
from localvertex.serve.endpoints.endpoints import Endpoints
from localvertex.serve.models.models import Models
from localvertex.serve.pipeline_jobs.records import RunRecords
from localvertex.serve.schedules import schedules
from localvertex.show import report
from localvertex.show.html import templates
from localvertex.state.models import evaluations
from localvertex.state.models.reading import CHAMPION, SOURCE, ModelRecords

_INDEX, _MODEL = "index.html.j2", "model.html.j2"

_ANYWHERE = Call(version="v1", location=Location(project="local-project", region="us-central1"))
"""The registry belongs to the work directory, so every location shows all of it."""

_MAX_ROWS = 200
"""The newest rows of each table are shown."""

_MAX_FILE_BYTES = 64 << 20

_NAVIGATION = "<!--navigation-->"
"""Where the page of a run gets the links of the server; in a file on its own they would lead nowhere."""

_LINKS = '<nav><a href="/">All runs</a><a href="/#models">Models</a></nav>'

_COMMON = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}

_HEADERS = {"Content-Security-Policy": f"{templates.policy()}; frame-ancestors 'none'", **_COMMON}
"""No script but the one of the pages, by its hash, and no external content: runs embed what components have written."""

_SANDBOX = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:",
    **_COMMON,
}
"""For the pages that components have written: no scripts at all, and an origin of their own."""


class Pages:
    """The pages of one work directory."""

    def __init__(self, store: Store, jobs: CustomJobs, models: Models, endpoints: Endpoints) -> None:
        self._store, self._custom_jobs, self._models, self._work_dir = store, jobs, models, store.folder.parent
        self._endpoints = endpoints

    @property
    def routes(self) -> list[Route]:
        """The routes of the pages."""
        return [
            Route("/", _served(lambda _: self.index())),
            # The folders of the work directory, so that links between files work here, too.
            Route("/runs/models/{id:id}/{version:id}/", _served(lambda request: self.model(**request.path_params))),
            Route("/runs/{id:id}/{path:path}", _served(lambda request: self.file(**request.path_params))),
        ]

    def index(self) -> Response:
        """Render runs, custom jobs, models, endpoints and schedules with their states."""
        runs = ((name, each.content or {}) for name, each in self._store.index.summaries(RunRecords(self._work_dir)))
        runs_by_time = sorted(sorted(runs), key=lambda each: str(each[1].get("create_time", "")), reverse=True)
        page = templates.render(
            _INDEX,
            work_dir=self._work_dir,
            runs=[
                (name, content, (self._work_dir / name / report.FILE).is_file())
                for name, content in runs_by_time[:_MAX_ROWS]
            ],
            custom_jobs=_newest(self._custom_jobs.records),
            schedules=_newest(schedules.records(self._store)),
            models=[(each, self._champion(each)) for each in self._models.list_all(_ANYWHERE)["models"]],
            endpoints=self._endpoints.all(_ANYWHERE)[:_MAX_ROWS],
        )
        return HTMLResponse(page, headers=_HEADERS)

    def file(self, id: str, path: str) -> Response:
        """Return a file of a run: its page with links, pages of steps without scripts, all others as plain text."""
        try:
            return self._file(id, path)
        except (OSError, ValueError):  # a null byte, a long name, a loop of links, a file that was just removed
            return Response(f"the run {id} has no file {path[:300]!r}", 404, _HEADERS, "text/plain")

    def _file(self, id: str, path: str) -> Response:
        folder = (self._work_dir / id).resolve()
        found = (folder / path).resolve()
        is_run = folder.parent == self._work_dir.resolve() and (folder / report.FILE).is_file()
        is_hidden = any(part.startswith(".") for part in Path(path).parts)
        # Links are resolved first, because the location of the file itself decides.
        is_inside = is_run and not is_hidden and found != folder and found.is_relative_to(folder)
        if is_inside and found.is_dir():
            names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in found.iterdir())
            return Response("\n".join(names), headers=_HEADERS, media_type="text/plain")
        if not is_inside or not found.is_file():
            raise FileNotFoundError
        if found.stat().st_size > _MAX_FILE_BYTES:
            return Response(
                f"{found} is larger than {_MAX_FILE_BYTES} bytes; open the file itself", 413, _HEADERS, "text/plain"
            )
        if found == folder / report.FILE:
            page = found.read_text(errors="replace").replace(_NAVIGATION, _LINKS, 1)
            return HTMLResponse(page, headers=_HEADERS)
        if found.suffix == ".html":
            return Response(found.read_bytes(), headers=_SANDBOX, media_type="text/html")
        return Response(found.read_bytes(), headers=_HEADERS, media_type="text/plain")

    def model(self, id: str, version: str) -> Response:
        """Render a version of a model: evaluations, files, the run that made it, and the other versions."""
        folder = self._work_dir / "models" / id / version
        versions = ModelRecords(folder.parent)
        try:
            content = versions.content(version) if version in versions.numbers else None
        except (OSError, ValueError):
            content = None
        if content is None:
            return Response(f"no readable version {version} of the model {id}", 404, _HEADERS, "text/plain")
        every = sorted(each for each in folder.rglob("*") if each.is_file())
        sizes = [(str(each.relative_to(folder)), each.stat().st_size) for each in every[:_MAX_ROWS]]
        page = templates.render(
            _MODEL,
            model=content,
            version=version,
            folder=folder,
            aliases=_aliases(folder.parent, version),
            versions=[(each, _aliases(folder.parent, each)) for each in versions.numbers[::-1][:_MAX_ROWS]],
            evaluations=[_evaluation(folder, each) for each in evaluations.ids(folder)[:_MAX_ROWS]],
            run=self._run_of(str(content.get(SOURCE, ""))),
            sizes=sizes,
            num_more=len(every) - len(sizes),
        )
        return HTMLResponse(page, headers=_HEADERS)

    def _champion(self, model: dict[str, Any]) -> str:
        """Return the version with the alias of the champion, empty without one."""
        with suppress(OSError, *UNUSABLE):
            return ModelRecords(self._work_dir / "models" / model["name"].rpartition("/")[2]).aliases.get(CHAMPION, "")
        return ""

    def _run_of(self, uri: str) -> str:
        """Return the run whose folder contains a path, empty when it has no page."""
        path = Path(uri)
        is_inside = path != self._work_dir and path.is_relative_to(self._work_dir)
        name = path.relative_to(self._work_dir).parts[0] if is_inside else ""
        return name if name and (self._work_dir / name / report.FILE).is_file() else ""


def _aliases(model: Path, number: str) -> list[str]:
    """Return the aliases of a version, none when their file is damaged."""
    try:
        return sorted(ModelRecords(model).aliases_of(number))
    except (OSError, *UNUSABLE):
        return []


def _evaluation(version: Path, evaluation_id: str) -> dict[str, Any]:
    """Return the content of an evaluation, a reason when it is damaged."""
    try:
        return evaluations.content(version, evaluation_id)
    except (OSError, ValueError) as error:
        return {"display_name": f"{evaluation_id} is damaged", "metrics": str(error)}


def _newest(records: StoredRecords) -> list[dict[str, Any]]:
    """Return the newest resources, and before them what is shown of damaged ones."""
    found = list(records.found(_ANYWHERE, set()))
    return sorted(found, key=lambda each: each.get("createTime", "~"), reverse=True)[:_MAX_ROWS]


def _served(page: Callable[[Request], Response]) -> Any:
    """Build the endpoint of a page, which runs in a thread because it reads files."""

    async def respond(request: Request) -> Response:
        return await run_in_threadpool(page, request)

    return respond
