"""All routes of the console, collected from its rooms."""

from starlette.routing import Route

from localvertex.serve.api.store import Store
from localvertex.serve.console import static
from localvertex.serve.console.datasets.datasets import Datasets
from localvertex.serve.console.models.models import Models
from localvertex.serve.endpoints.deployments import Deployments


class Console:
    """The console of one work directory.

    Args:
        store: The records of the server.
        deployments: The processes of models.
    """

    def __init__(self, store: Store, *, deployments: Deployments) -> None:
        self._store, self._work_dir = store, store.folder.parent
        self.models, self._datasets = Models(store, deployments), Datasets(store)

    @property
    def routes(self) -> list[Route]:
        """The page's files and the local routes."""
        return [*static.routes(), *self.models.routes, *self._datasets.routes]
