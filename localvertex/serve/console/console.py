"""All routes of the console, collected from its rooms."""

from starlette.routing import Route

from localvertex.serve.api.store import Store
from localvertex.serve.console import static
from localvertex.serve.console.events.events import Events
from localvertex.serve.console.run_files import RunFiles
from localvertex.serve.console.runs.listing import RunList
from localvertex.serve.console.runs.record import Records
from localvertex.serve.console.runs.routes import RunRoutes


class Console:
    """The console of one work directory.

    Args:
        store: The records of the server.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._work_dir = store, store.folder.parent
        self._records = Records(store)
        self._list = RunList(store)
        self._events, self._runs = Events(self._records, self._list), RunRoutes(self._records)

    @property
    def routes(self) -> list[Route]:
        """The page's files and the local routes."""
        rooms = (self._events, self._list, self._runs, RunFiles(self._work_dir))
        return [*static.routes(), *(route for room in rooms for route in room.routes)]
