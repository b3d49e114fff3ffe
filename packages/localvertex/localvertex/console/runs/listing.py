"""The list of all runs of the work folder, from the index: a page reads only the records that have changed."""

import time

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.store import Store
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs.outputs import RunOutputs
from localvertex.console.runs.row import Row
from localvertex.console.runs.rows import Pages


class RunList:
    """The runs, including those that `localvertex run` started.

    Args:
        store: The records of the server.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._runs, self._pages = store, RunOutputs(store), Pages()
        # No list of runs: each has rows with an id, or none.
        self._seen: tuple[str, list[Row]] = "", [{}]

    @local_route("GET", "/local/runs")
    def page(self, call: LocalCall) -> JsonObject:
        """Return one page of the rows that pass a filter, newest first.

        Raises:
            ApiError: A value of the query is wrong.
        """
        version, rows = self.rows()
        return self._pages.page(rows, call.query) | {"version": version}

    def rows(self) -> tuple[str, list[Row]]:
        """Return the rows of all runs, after a text that is another one whenever they have changed."""
        found = [(each.content or {})["row"] for _, each in self._store.index.summaries(self._runs)]
        if found != self._seen[1]:
            self._seen = str(time.time_ns()), found
        return self._seen

    def others(self) -> object:
        """Return what changes whenever the record of a custom job or a schedule does."""
        return [self._store.signatures(each) for each in ("customJobs", "schedules")]
