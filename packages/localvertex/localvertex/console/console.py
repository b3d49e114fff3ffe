"""All routes of the console, collected from its packages."""

from starlette.routing import Route

from localvertex.api.endpoints.predictions import Predictions
from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.pipeline_jobs.pipeline_jobs import PipelineJobs
from localvertex.api.rest.store import Store
from localvertex.api.schedules.schedules import Schedules
from localvertex.console import static
from localvertex.console.creating.creating import Creating
from localvertex.console.events.events import Events
from localvertex.console.jobs.routes import JobRoutes
from localvertex.console.local_route import routes_of
from localvertex.console.models.models import ModelCatalogue
from localvertex.console.runs.actions import RunActions
from localvertex.console.runs.experiments import Experiments
from localvertex.console.runs.graph import Graphs
from localvertex.console.runs.listing import RunList
from localvertex.console.runs.record import WatchedRuns
from localvertex.console.runs.routes import RunRoutes
from localvertex.console.schedules.routes import ScheduleRoutes


class Console:
    """The console of one work folder.

    Args:
        store: The records of the server.
        jobs: Its pipeline jobs.
        custom_jobs: The custom jobs of the API.
        schedules: Its schedules.
        predictions: The models that it runs.
    """

    def __init__(
        self,
        store: Store,
        jobs: PipelineJobs,
        custom_jobs: CustomJobs,
        schedules: Schedules,
        predictions: Predictions,
    ) -> None:
        records, runs = WatchedRuns(store, jobs.is_here), RunList(store)
        self._parts = (
            Creating(jobs),
            Events(records, runs, custom_jobs),
            runs,
            Experiments(store, runs),
            RunRoutes(records, custom_jobs),
            Graphs(store.folder.parent),
            JobRoutes(records, custom_jobs),
            RunActions(jobs),
            ScheduleRoutes(store, schedules),
            ModelCatalogue(store, predictions),
        )

    @property
    def routes(self) -> list[Route]:
        """The files of the page, and the local routes."""
        local = [route for part in self._parts for route in routes_of(part)]
        return [*static.routes(), *local]
