"""The graph of a run, or of a file that has not run yet, with the coordinates of its boxes."""

from collections.abc import Set
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from localvertex._base.compiled.load import documents_of, load, pipeline_of
from localvertex._base.compiled.spec import Pipeline
from localvertex._base.json_object import JsonObject
from localvertex.api.rest.errors import Status, invalid, refusing
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs import folders
from localvertex.show.view import graph, shape
from localvertex.store import run_folder

_FILE = "the file"


class Graphs:
    """The graphs of one work folder."""

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir

    @local_route("GET", "/local/runs/{id:id}/graph")
    def of_run(self, call: LocalCall) -> JsonObject:
        """Return the graph of a run.

        `closed` has the ids of its closed groups, each URL-encoded, after commas; by default those it did not take.
        """
        run_dir = folders.find_run(self._work_dir, call.path["id"])
        copy = run_folder.pipeline_copy(run_dir)
        lines: Set[str] = frozenset()
        with suppress(OSError, ValueError):
            lines = graph.not_taken(shape.read(run_dir)["tasks"])
        closed = call.query.get("closed")
        return _draw(pipeline_at(copy, copy.stat().st_mtime_ns), lines if closed is None else _close(closed), lines)

    @local_route("POST", "/local/graph")
    def of_content(self, call: LocalCall) -> JsonObject:
        """Return the graph of a compiled file whose text is `content`."""
        content, closed = call.body.get("content"), call.body.get("closed", "")
        if not isinstance(content, str) or not isinstance(closed, str):
            raise invalid("expected the text of a compiled file as `content`, and closed groups as the text `closed`")
        documents = documents_of(content.encode(errors="surrogatepass"), _FILE)
        return _draw(pipeline_of(documents, _FILE), _close(closed))


@lru_cache(maxsize=8)
def pipeline_at(path: Path, changed_ns: int) -> Pipeline:
    """Read a compiled file; reading a large one takes longer than drawing it."""
    return load(path).pipeline


def _close(text: str) -> Set[str]:
    return {unquote(each) for each in text.split(",") if each}


def _draw(pipeline: Pipeline, closed: Set[str], lines: Set[str] = frozenset()) -> JsonObject:
    with refusing(Status.FAILED_PRECONDITION, graph.NotDrawn):
        return asdict(graph.draw(pipeline, closed, lines))
