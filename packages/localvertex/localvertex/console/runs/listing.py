"""The list of all runs of the work folder, from the index: a page reads only the records that have changed."""

import time
from collections.abc import Set
from contextlib import suppress

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.api.rest.store import Store
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs.graph import pipeline_at
from localvertex.console.runs.outputs import RunOutputs
from localvertex.console.runs.row import Row
from localvertex.console.runs.rows import Pages
from localvertex.show.view.groups import Group, split_description
from localvertex.store import run_folder

_MAX_PIPELINES = 4
"""Number of pipelines whose compiled files are read for the groups."""


class RunList:
    """The runs, including those that `localvertex run` started.

    Args:
        store: The records of the server.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._runs, self._pages = store, RunOutputs(store), Pages()
        # No list of runs: each has rows with an id, or none.
        self._seen: tuple[str, list[Row]] = "", [{}]
        self._newest: tuple[str, list[str]] = "", []
        """Version of the rows, and the newest run of each pipeline in them."""

    @local_route("GET", "/local/runs")
    def page(self, call: LocalCall) -> JsonObject:
        """Return one page of the rows that pass a filter, newest first.

        Raises:
            ApiError: A value of the query is wrong.
        """
        version, rows = self.rows()
        answer = self._pages.page(rows, call.query)
        groups = self._groups(version, rows, set(answer["parameters"]))
        ranks = [name for part in ("names", "more") for each in groups for name in each[part]]
        return answer | {
            "parameters": [*ranks, *(each for each in answer["parameters"] if each not in ranks)],
            "groups": [{"title": each["title"], "names": each["names"] + each["more"]} for each in groups],
            "version": version,
        }

    def _groups(self, version: str, rows: list[Row], wanted: Set[str]) -> list[Group]:
        """Return the groups of parameters in the forms of the newest pipelines, each parameter once."""
        newest = self._newest
        if newest[0] != version:
            runs = {each["pipeline"]: each["id"] for each in sorted(rows, key=lambda each: each["create_time"] or "")}
            self._newest = newest = version, [*reversed(runs.values())][:_MAX_PIPELINES]
        found, left = dict[str, Group](), set(wanted)
        for run_id in newest[1]:
            with suppress(OSError, UserError):
                copy = run_folder.pipeline_copy(self._store.folder.parent / run_id)
                pipeline = pipeline_at(copy, copy.stat().st_mtime_ns)
                for each in split_description(pipeline.description, pipeline.root.input_parameters)[1]:
                    group = found.setdefault(each["title"], {"title": each["title"], "names": [], "more": []})
                    for part in ("names", "more"):
                        group[part] += [name for name in each[part] if name in left]
                    left -= {*each["names"], *each["more"]}
        return [each for each in found.values() if each["names"] or each["more"]]

    def rows(self) -> tuple[str, list[Row]]:
        """Return a text that differs whenever the rows have changed, and the rows of all runs."""
        found = [(each.content or {})["row"] for _, each in self._store.index.summaries(self._runs)]
        if found != self._seen[1]:
            self._seen = str(time.time_ns()), found
        return self._seen

    def others(self) -> object:
        """Return a value that changes whenever the record of a custom job or a schedule changes."""
        return [self._store.signatures(each, self._store.ids(each)) for each in ("customJobs", "schedules")]
