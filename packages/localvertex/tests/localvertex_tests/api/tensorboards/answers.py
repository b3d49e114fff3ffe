"""Queries of tests about tensorboards."""

from typing import Any

from vertex_testing.server import PARENT


def values(run: Any) -> dict[str, list[tuple[int, float]]]:
    """Return the points of all time series of a run."""
    found = run.read_time_series_data()
    return {name: [(each.step, each.scalar.value) for each in data.values] for name, data in found.items()}


def path_of(resource: Any) -> str:
    """Return the path of a resource relative to the location."""
    return str(resource.resource_name).removeprefix(f"{PARENT}/")
