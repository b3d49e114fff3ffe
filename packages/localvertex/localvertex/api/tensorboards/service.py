"""TensorboardService: its methods by path, which are those that the SDK's experiments, lists and uploads call."""

from collections.abc import Callable
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import invalid
from localvertex.api.rest.store import Store
from localvertex.api.tensorboards import points, records
from localvertex.api.tensorboards.place import EXPERIMENT, RUN, TIME_SERIES, Place
from localvertex.api.tensorboards.points import Point
from localvertex.api.tensorboards.records import VALUE_FIELDS
from localvertex.api.tensorboards.resources import Resources, Tensorboards

_EXPERIMENTS = "/{tensorboard:id}/experiments"
_RUNS = f"{_EXPERIMENTS}/{{experiment:id}}/runs"
_ID = "/{id:id}"

Methods = dict[str, tuple[str, str, Callable[[Call], JsonObject]]]

_MAX_WRITTEN = 5000
"""Points in one request for a run, as documented."""

_NUM_RUN_IDS, _NUM_SERIES_IDS = 3, 4

Additions = dict[Path, list[Point]]


def methods(store: Store) -> Methods:
    """Return HTTP method, path after `tensorboards` and implementation of each method."""
    data, series = Data(store), Resources(TIME_SERIES, store)
    found: Methods = {
        "timeSeries.batchCreate": ("POST", f"{_EXPERIMENTS}{_ID}:batchCreate", series.batch_create),
        "batchRead": ("GET", f"{_ID}:batchRead", data.batch_read),
        "experiments.write": ("POST", f"{_EXPERIMENTS}{_ID}:write", data.write_experiment),
        "runs.write": ("POST", f"{_RUNS}{_ID}:write", data.write_run),
    }
    for path, resources in (
        ("", Tensorboards(store)),
        (_EXPERIMENTS, Resources(EXPERIMENT, store)),
        (_RUNS, Resources(RUN, store)),
        (f"{_RUNS}/{{run:id}}/timeSeries", series),
    ):
        kind = resources.kind.collection
        found |= {
            f"{kind}.create": ("POST", path, resources.create),
            f"{kind}.get": ("GET", f"{path}{_ID}", resources.get),
            f"{kind}.list": ("GET", path, resources.list_all),
            f"{kind}.delete": ("DELETE", f"{path}{_ID}", resources.delete),
        }
    return found


class Data:
    """The points of all time series."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write_run(self, call: Call) -> JsonObject:
        """Add points to time series of a run, to all or to none."""
        body = messages.normalise("WriteTensorboardRunDataRequest", call.body)
        with self._store.lock:
            points.append(self._additions(Place.of_call(call), body))
        return {}

    def write_experiment(self, call: Call) -> JsonObject:
        """Add points to time series of several runs, to all or to none."""
        body = messages.normalise("WriteTensorboardExperimentDataRequest", call.body)
        experiment, every = Place.of_call(call), Additions()
        with self._store.lock:
            records.find(self._store, experiment)
            for each in body.get("writeRunDataRequests", []):
                run = Place.of_name(each.get("tensorboardRun", ""), experiment, _NUM_RUN_IDS)
                for path, added in self._additions(run, each).items():
                    every.setdefault(path, []).extend(added)
            points.append(every)
        return {}

    def batch_read(self, call: Call) -> JsonObject:
        """Return the points of several time series, all of them where the service returns a sample."""
        tensorboard, names = Place.of_call(call), [each for each in call.repeated.get("timeSeries", []) if each]
        records.find(self._store, tensorboard)
        data = []
        for place in [Place.of_name(each, tensorboard, _NUM_SERIES_IDS) for each in names]:
            kind = records.find(self._store, place)["valueType"]
            found = points.read(records.points_file(self._store, place), self._store.report)
            data.append({"tensorboardTimeSeriesId": place.id, "valueType": kind, "values": found})
        return {"timeSeriesData": data}

    def _additions(self, run: Place, body: JsonObject) -> Additions:
        """Check the points of a request for one run, and return them by file."""
        records.find(self._store, run)
        additions = Additions()
        for each in body.get("timeSeriesData", []):
            place = run.child(each.get("tensorboardTimeSeriesId", ""))
            kind, values = records.find(self._store, place)["valueType"], each.get("values", [])
            if each.get("valueType", kind) != kind or any(VALUE_FIELDS[kind] not in value for value in values):
                raise invalid(f"{place.name} has values of the type {kind}, the request has others")
            additions.setdefault(records.points_file(self._store, place), []).extend(values)
        num = sum(map(len, additions.values()))
        if num > _MAX_WRITTEN:
            raise invalid(f"timeSeriesData: expected up to {_MAX_WRITTEN} points in a request for a run, found {num}")
        return additions
