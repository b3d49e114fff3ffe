"""TensorboardService: its methods by path, which are those that the SDK's experiments, lists and uploads call."""

from collections.abc import Callable
from typing import Any

from localvertex.api.rest.call import Call
from localvertex.api.rest.store import Store
from localvertex.api.tensorboards.data import Data
from localvertex.api.tensorboards.place import EXPERIMENT, RUN, TIME_SERIES
from localvertex.api.tensorboards.resources import Resources, Tensorboards

_EXPERIMENTS = "/{tensorboard:id}/experiments"
_RUNS = f"{_EXPERIMENTS}/{{experiment:id}}/runs"
_ID = "/{id:id}"

Methods = dict[str, tuple[str, str, Callable[[Call], dict[str, Any]]]]


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
