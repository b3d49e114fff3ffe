"""The runs of the API's experiments as rows, like those of pipelines: with their parameters and metrics.

They are contexts of the metadata. Pipeline runs in an experiment are also contexts; their rows are those of the runs.
"""

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.store import Store
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs.listing import RunList
from localvertex.console.runs.outputs import Content, small
from localvertex.console.runs.row import EMPTY, Row, numbers
from localvertex.console.runs.rows import Pages

_CONTEXTS = "metadata/*/*/metadataStores/default/contexts"
"""The collections of all locations."""

_LOGGED = ("_metrics", "_params")


class Experiments:
    """The experiments of all locations.

    Args:
        store: The records of the server.
        runs: The list of runs.
    """

    def __init__(self, store: Store, runs: RunList) -> None:
        self._store, self._runs, self._pages = store, runs, Pages()

    @local_route("GET", "/local/experiments")
    def page(self, call: LocalCall) -> JsonObject:
        """Return one page of the runs of experiments as `/local/runs` does; `pipeline` is the experiment.

        Raises:
            ApiError: A value of the query is wrong.
        """
        of_runs = {each["id"]: each for each in self._runs.rows()[1]}
        collections = [str(each.relative_to(self._store.folder)) for each in self._store.folder.glob(_CONTEXTS)]
        contexts = {each["name"]: each for name in sorted(collections) for each in self._store.all(name)}
        rows = [
            (of_runs.get(_id(each)) or _row(each))
            | {"pipeline": contexts[parent].get("displayName") or _id(contexts[parent])}
            for each in contexts.values()
            for parent in each.get("parentContexts", [])
            if contexts.get(parent, {}).get("schemaTitle") == "system.Experiment"
        ]
        return self._pages.page(rows, call.query)


def _id(of: Content) -> str:
    return str(of["name"]).rpartition("/")[2]


def _row(context: Content) -> Row:
    """Return the row of a run; the SDK keeps what it logs in fields of the metadata that begin with `_`."""
    metadata = context.get("metadata", {})
    metrics, parameters = (found if isinstance(found := metadata.get(name), dict) else {} for name in _LOGGED)
    return EMPTY | {
        "id": _id(context),
        "name": context.get("displayName") or _id(context),
        "state": str(metadata.get("_state", "")),
        "create_time": context.get("createTime"),
        "resource": context["name"],
        "metrics": numbers(small(metrics)),
        "parameters": small(parameters),
    }
