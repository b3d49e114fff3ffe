"""All routes of the console, collected from its rooms."""

from starlette.routing import Route

from localvertex.serve.api.store import Store
from localvertex.serve.console import static


class Console:
    """The console of one work directory.

    Args:
        store: The records of the server.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._work_dir = store, store.folder.parent

    @property
    def routes(self) -> list[Route]:
        """The page's files and the local routes."""
        return [*static.routes()]
