"""All routes of the console, collected from its rooms."""

from starlette.routing import Route

from localvertex.serve.api.store import Store
from localvertex.serve.console import static
from localvertex.serve.console.creating.creating import Creating
from localvertex.serve.console.events.events import Events
from localvertex.serve.console.run_files import RunFiles
from localvertex.serve.console.runs.graph import Graphs
from localvertex.serve.console.runs.record import Records
from localvertex.serve.console.runs.routes import RunRoutes
from localvertex.serve.pipeline_jobs.pipeline_jobs import PipelineJobs


class Console:
    """The console of one work directory.

    Args:
        store: The records of the server.
        pipeline_jobs: The runs that the server starts.
    """

    def __init__(self, store: Store, pipeline_jobs: PipelineJobs) -> None:
        self._store, self._work_dir = store, store.folder.parent
        self._creating = Creating(store, pipeline_jobs)
        self._records = Records(store)
        self._events, self._runs = Events(self._records), RunRoutes(self._records)

    @property
    def routes(self) -> list[Route]:
        """The page's files and the local routes."""
        files, graphs = RunFiles(self._work_dir), Graphs(self._records, self._work_dir)
        rooms = (files, graphs, self._creating, self._events, self._runs)
        return [*static.routes(), *(route for room in rooms for route in room.routes)]
