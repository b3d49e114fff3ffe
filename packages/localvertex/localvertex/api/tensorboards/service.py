"""TensorboardService: its methods by path."""

from collections.abc import Callable
from typing import Any

from localvertex.api.rest.call import Call
from localvertex.api.rest.operations import Operations
from localvertex.api.rest.store import Store
from localvertex.api.tensorboards.data import Data
from localvertex.api.tensorboards.place import EXPERIMENT, RUN, TIME_SERIES
from localvertex.api.tensorboards.resources import Resources
from localvertex.api.tensorboards.tensorboards import Tensorboards

_EXPERIMENTS = "/{tensorboard:id}/experiments"
_RUNS = f"{_EXPERIMENTS}/{{experiment:id}}/runs"
_SERIES = f"{_RUNS}/{{run:id}}/timeSeries"
_ID = "/{id:id}"

Methods = dict[str, tuple[str, str, Callable[[Call], dict[str, Any]]]]


def methods(store: Store, operations: Operations) -> Methods:
    """Return HTTP method, path after `tensorboards` and implementation of each method."""
    tensorboards = Tensorboards(store, operations)
    experiments, runs = Resources(EXPERIMENT, store, operations), Resources(RUN, store, operations)
    data = Data(store)
    series = Resources(TIME_SERIES, store, operations, data.view)
    return (
        _standard("", tensorboards)
        | _standard(_EXPERIMENTS, experiments)
        | _standard(_RUNS, runs)
        | _standard(_SERIES, series)
        | {
            "runs.batchCreate": ("POST", f"{_RUNS}:batchCreate", runs.batch_create),
            "timeSeries.batchCreate": ("POST", f"{_EXPERIMENTS}{_ID}:batchCreate", series.batch_create),
            "batchRead": ("GET", f"{_ID}:batchRead", data.batch_read),
            "experiments.write": ("POST", f"{_EXPERIMENTS}{_ID}:write", data.write_experiment),
            "runs.write": ("POST", f"{_RUNS}{_ID}:write", data.write_run),
            "read": ("GET", f"{_SERIES}{_ID}:read", data.read),
            "export": ("POST", f"{_SERIES}{_ID}:exportTensorboardTimeSeries", data.export),
        }
    )


def _standard(path: str, resources: Resources) -> Methods:
    """Return the methods that all kinds of resources have."""
    kind = resources.kind.collection
    return {
        f"{kind}.create": ("POST", path, resources.create),
        f"{kind}.get": ("GET", f"{path}{_ID}", resources.get),
        f"{kind}.list": ("GET", path, resources.list_all),
        f"{kind}.patch": ("PATCH", f"{path}{_ID}", resources.patch),
        f"{kind}.delete": ("DELETE", f"{path}{_ID}", resources.delete),
    }
