"""`GET /local/events`: one stream per tab, of a run with its logs and jobs, or of the list of runs."""

from anyio import CapacityLimiter
from starlette.responses import Response
from starlette.routing import Route

from localvertex.serve.connection import EVENTS
from localvertex.serve.console.events.changes import LogChanges, RunChanges, together
from localvertex.serve.console.events.stream import EventStream
from localvertex.serve.console.local_route import LocalCall, local_route
from localvertex.serve.console.runs.folders import find_run, step_folder
from localvertex.serve.console.runs.record import Records

_NUM_THREADS = 8
"""For all streams: the other routes have threads of their own."""


class Events:
    """The streams of a server.

    Args:
        records: The runs.
    """

    def __init__(self, records: Records) -> None:
        self._records, self._work_dir = records, records.work_dir
        self._threads = CapacityLimiter(_NUM_THREADS)

    @property
    def routes(self) -> list[Route]:
        """The route of the streams."""
        return [local_route("GET", EVENTS, self.follow)]

    def follow(self, call: LocalCall) -> Response:
        """Return the stream of a run.

        Raises:
            ApiError: There is no such run, or no such step.
        """
        run_dir = find_run(self._work_dir, call.query.get("run", ""))
        sources = [RunChanges(self._records, run_dir)]
        if task := call.query.get("log", ""):
            step_folder(run_dir, task)
            sources.append(LogChanges(run_dir, task, call.query.get("file", "")))
        return EventStream(lambda: together(sources), self._threads)
