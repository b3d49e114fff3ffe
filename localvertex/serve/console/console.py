"""All routes of the console, collected from its packages."""

from starlette.routing import Route

from localvertex.serve.api.store import Store
from localvertex.serve.console import static
from localvertex.serve.console.comparing.comparison import Comparisons
from localvertex.serve.console.creating.creating import Creating
from localvertex.serve.console.datasets import Datasets
from localvertex.serve.console.events.events import Events
from localvertex.serve.console.jobs.routes import JobRoutes
from localvertex.serve.console.local_route import routes_of
from localvertex.serve.console.models.models import Models
from localvertex.serve.console.run_files import RunFiles
from localvertex.serve.console.runs.actions import RunActions
from localvertex.serve.console.runs.graph import Graphs
from localvertex.serve.console.runs.listing import RunList
from localvertex.serve.console.runs.record import Records
from localvertex.serve.console.runs.routes import RunRoutes
from localvertex.serve.console.schedules.routes import ScheduleRoutes
from localvertex.serve.custom_jobs.custom_jobs import CustomJobs
from localvertex.serve.endpoints.deployments import Deployments
from localvertex.serve.pipeline_jobs.pipeline_jobs import PipelineJobs
from localvertex.serve.schedules.schedules import Schedules


class Console:
    """The console of one work directory.

    Args:
        store: The records of the server.
        jobs: Its pipeline jobs.
        custom_jobs: The custom jobs of the API.
        schedules: Its schedules.
        deployments: The processes of models.
    """

    def __init__(
        self,
        store: Store,
        jobs: PipelineJobs,
        custom_jobs: CustomJobs,
        schedules: Schedules,
        deployments: Deployments,
    ) -> None:
        records, runs = Records(store, jobs.is_here), RunList(store)
        self.models = Models(store, deployments)
        self._files = RunFiles(store.folder.parent)
        self._parts = (
            Creating(store, jobs),
            Events(records, runs, custom_jobs),
            runs,
            RunRoutes(records),
            Graphs(records),
            JobRoutes(records, custom_jobs),
            RunActions(jobs),
            Comparisons(records),
            ScheduleRoutes(store, schedules),
            self.models,
            Datasets(store),
        )

    @property
    def routes(self) -> list[Route]:
        """The page's files, those of runs, and the local routes."""
        local = [route for part in self._parts for route in routes_of(part)]
        return [*static.routes(), *self._files.routes, *local]
