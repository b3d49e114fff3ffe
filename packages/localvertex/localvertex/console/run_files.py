"""The files of runs in windows of their own: pages without scripts, and all else as text, image or download."""

from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from localvertex.console.file_responses import COMMON, SANDBOX, download, viewable_file
from localvertex.store import record

_MAX_SHOWN_BYTES = 64 << 20

_TYPES = {
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""Content types that browsers may render, under the policy of the sandbox."""


class RunFiles:
    """The files below the runs of a work folder.

    Args:
        work_dir: The work folder.
    """

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir

    @property
    def routes(self) -> list[Route]:
        """The files of all runs, so that links between them work here, too."""

        async def file(request: Request) -> Response:
            return await run_in_threadpool(self._respond, request)

        return [Route("/runs/{id:id}/{path:path}", file, methods=["GET"])]

    def _respond(self, request: Request) -> Response:
        run_id, path = request.path_params["id"], request.path_params["path"]
        try:
            found = self._find(run_id, path)
            if "download" in request.query_params and found.is_file():
                return download(found)
            if found.stat().st_size > _MAX_SHOWN_BYTES and found.is_file():
                text = f"{found} is larger than {_MAX_SHOWN_BYTES} bytes; add ?download to the address"
                return Response(text.encode(errors="replace"), 413, SANDBOX, "text/plain")
            if found == (self._work_dir / run_id).resolve() / record.PAGE:
                # The console has the same view, and other headers would be needed for the scripts in the file.
                return RedirectResponse(f"/#/runs/{run_id}", 303, COMMON)
            return _entry(found)
        except (OSError, ValueError):  # a null byte, a long name, a loop of links, a file that was just removed
            return Response(f"the run {run_id} has no file {path[:300]!r}", 404, SANDBOX, "text/plain")

    def _find(self, run_id: str, path: str) -> Path:
        """Return a file or a folder of a run.

        Raises:
            FileNotFoundError: It does not exist, is hidden, or a link leads out of the run.
        """
        folder = (self._work_dir / run_id).resolve()
        found = (folder / path).resolve()
        is_run = folder.parent == self._work_dir.resolve() and (folder / record.FILE).is_file()
        is_hidden = any(part.startswith(".") for part in (*Path(path).parts, *found.parts[len(folder.parts) :]))
        # Links are resolved first, because the location of the file itself decides.
        if not is_run or is_hidden or found == folder or not found.is_relative_to(folder) or not found.exists():
            raise FileNotFoundError
        return found


def _entry(found: Path) -> Response:
    """Return a file as its type, if browsers may show it, and the names in a folder."""
    if found.is_dir():
        names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in found.iterdir())
        return Response("\n".join(names).encode(errors="replace"), headers=SANDBOX, media_type="text/plain")
    return viewable_file(found, _TYPES.get(found.suffix.lower(), "text/plain"))
