"""All routes of the console, collected from its rooms."""

from starlette.routing import Route

from localvertex.serve.api.store import Store
from localvertex.serve.console import static
from localvertex.serve.console.datasets.datasets import Datasets
from localvertex.serve.console.events.events import Events
from localvertex.serve.console.models.models import Models
from localvertex.serve.console.run_files import RunFiles
from localvertex.serve.console.runs.listing import RunList
from localvertex.serve.console.runs.record import Records
from localvertex.serve.console.runs.routes import RunRoutes
from localvertex.serve.endpoints.deployments import Deployments


class Console:
    """The console of one work directory.

    Args:
        store: The records of the server.
        deployments: The processes of models.
    """

    def __init__(self, store: Store, *, deployments: Deployments) -> None:
        self._store, self._work_dir = store, store.folder.parent
        self._records = Records(store)
        self._list = RunList(store)
        self._events, self._runs = Events(self._records, self._list), RunRoutes(self._records)
        self.models, self._datasets = Models(store, deployments), Datasets(store)

    @property
    def routes(self) -> list[Route]:
        """The page's files and the local routes."""
        return [
            *static.routes(),
            *RunFiles(self._work_dir).routes,
            *self._events.routes,
            *self._list.routes,
            *self._runs.routes,
            *self.models.routes,
            *self._datasets.routes,
        ]
