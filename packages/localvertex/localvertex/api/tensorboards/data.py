"""Writing and reading the points of time series."""

from pathlib import Path
from typing import Any

from localvertex.api.rest import filters, messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import invalid
from localvertex.api.rest.store import Store
from localvertex.api.tensorboards import points, records
from localvertex.api.tensorboards.place import Place
from localvertex.api.tensorboards.points import Point, step_of
from localvertex.api.tensorboards.records import VALUE_FIELDS, Resource

_MAX_WRITTEN = 5000
"""Points in one request for a run, as documented."""

_MAX_READ = {"SCALAR": 1000, "TENSOR": 100, "BLOB_SEQUENCE": 100}
"""Points of a time series that are read without another limit, as documented."""

_DEFAULT_EXPORTED, _MAX_EXPORTED = 1000, 10_000

_NUM_RUN_IDS, _NUM_SERIES_IDS = 3, 4

Additions = dict[Path, list[Point]]


class Data:
    """The points of all time series."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def view(self, place: Place, series: Resource) -> Resource:
        """Return a time series with its last step and time."""
        metadata = points.summary(records.points_file(self._store, place))
        return series | ({"metadata": metadata} if metadata else {})

    def write_run(self, call: Call) -> dict[str, Any]:
        """Add points to time series of a run, to all or to none."""
        body = messages.normalised(call.version, "WriteTensorboardRunDataRequest", call.body)
        with self._store.lock:
            points.append(self._additions(Place.of_call(call), body))
        return {}

    def write_experiment(self, call: Call) -> dict[str, Any]:
        """Add points to time series of several runs, to all or to none."""
        body = messages.normalised(call.version, "WriteTensorboardExperimentDataRequest", call.body)
        experiment, every = Place.of_call(call), Additions()
        with self._store.lock:
            records.find(self._store, experiment)
            for each in body.get("writeRunDataRequests", []):
                run = Place.of_name(each.get("tensorboardRun", ""), experiment, _NUM_RUN_IDS)
                for path, added in self._additions(run, each).items():
                    every.setdefault(path, []).extend(added)
            points.append(every)
        return {}

    def read(self, call: Call) -> dict[str, Any]:
        """Return the points of a time series, a sample if there are too many."""
        wanted = call.query.get("maxDataPoints", "")
        limit = None if wanted == "-1" else call.number("maxDataPoints", 0)
        return {
            "timeSeriesData": self._data(Place.of_call(call), limit, self._test(call, call.query.get("filter", "")))
        }

    def batch_read(self, call: Call) -> dict[str, Any]:
        """Return the points of several time series, a sample of those with too many."""
        tensorboard, names = Place.of_call(call), [each for each in call.repeated.get("timeSeries", []) if each]
        records.find(self._store, tensorboard)
        places = [Place.of_name(each, tensorboard, _NUM_SERIES_IDS) for each in names]
        return {"timeSeriesData": [self._data(each, 0, self._test(call, "")) for each in places]}

    def export(self, call: Call) -> dict[str, Any]:
        """Return a page of the points of a time series, ordered by step."""
        body = messages.normalised(call.version, "ExportTensorboardTimeSeriesDataRequest", call.body)
        place, test = Place.of_call(call), self._test(call, body.get("filter", ""))
        records.find(self._store, place)
        found = [
            each for each in points.read(records.points_file(self._store, place), self._store.report) if test(each)
        ]
        if body.get("orderBy", "step") not in ("step", "step asc", "step desc"):
            raise invalid(f"orderBy {body['orderBy'][:100]!r}: expected step or step desc")
        token, sign = body.get("pageToken", ""), 1
        if body.get("orderBy") == "step desc":
            sign = -1
            found.reverse()
        if token:
            try:
                last = int(token[:20])
            except ValueError:
                raise invalid("pageToken was not issued by this server") from None
            found = [each for each in found if sign * step_of(each) > sign * last]
        size = body.get("pageSize", 0)
        if size < 0:
            raise invalid(f"pageSize: expected a positive number, found {size}")
        chosen = found[: min(size or _DEFAULT_EXPORTED, _MAX_EXPORTED)]
        more = {"nextPageToken": str(step_of(chosen[-1]))} if len(chosen) < len(found) else {}
        return {"timeSeriesDataPoints": chosen} | more

    def _additions(self, run: Place, body: dict[str, Any]) -> Additions:
        """Check the points of a request for one run, and return them by file."""
        records.find(self._store, run)
        additions = Additions()
        for each in body.get("timeSeriesData", []):
            place = run.child(each.get("tensorboardTimeSeriesId", ""))
            series = records.find(self._store, place)
            kind, values = series["valueType"], each.get("values", [])
            wrong = [value for value in values if VALUE_FIELDS[kind] not in value]
            if wrong or each.get("valueType", kind) != kind:
                raise invalid(f"{place.name} has values of the type {kind}, the request has others")
            additions.setdefault(records.points_file(self._store, place), []).extend(values)
        num = sum(map(len, additions.values()))
        if num > _MAX_WRITTEN:
            raise invalid(f"timeSeriesData: expected up to {_MAX_WRITTEN} points in a request for a run, found {num}")
        return additions

    def _data(self, place: Place, limit: int | None, test: filters.Test) -> dict[str, Any]:
        """Build the TimeSeriesData of a time series.

        Args:
            place: The time series.
            limit: The maximum number of points; 0 for the default, None for no limit.
            test: Which points count.
        """
        series = records.find(self._store, place)
        found = [
            each for each in points.read(records.points_file(self._store, place), self._store.report) if test(each)
        ]
        if limit is not None:
            found = sample(found, limit or _MAX_READ[series["valueType"]])
        data = {"tensorboardTimeSeriesId": place.id, "valueType": series["valueType"]}
        return data | {"values": found}

    def _test(self, call: Call, text: str) -> filters.Test:
        return filters.parse(text, messages.field_names(call.version, "TimeSeriesDataPoint"))


def sample(found: list[Point], limit: int) -> list[Point]:
    """Return at most this many points, at equal distances, with the first and the last one.

    The service chooses at random. The last point is always there, because the SDK counts on from it.
    """
    if len(found) <= limit:
        return found
    if limit == 1:
        return found[-1:]
    return [found[index * (len(found) - 1) // (limit - 1)] for index in range(limit)]
