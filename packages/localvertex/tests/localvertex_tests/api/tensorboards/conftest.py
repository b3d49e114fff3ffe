"""Runs in a tensorboard that the tests share."""

from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions

from vertex_testing.server import Server


@pytest.fixture(scope="module")
def tensorboard(server: Server, sdk: Callable[[Server], Any]) -> Any:
    """Make a tensorboard of its own for the tests of this module."""
    return sdk(server).Tensorboard.create(display_name="shared")


@pytest.fixture
def new_run(server: Server, sdk: Any, tensorboard: Any) -> Callable[..., Any]:
    """Make runs in an experiment of the test's own."""

    def new(experiment: str, run: str = "run-1", **series: str) -> Any:
        aiplatform = sdk(server)
        try:
            parent = aiplatform.TensorboardExperiment(f"{tensorboard.resource_name}/experiments/{experiment}")
        except exceptions.NotFound:
            parent = aiplatform.TensorboardExperiment.create(experiment, tensorboard.resource_name)
        made = aiplatform.TensorboardRun.create(run, parent.resource_name)
        for name, value_type in series.items():
            made.create_tensorboard_time_series(display_name=name, value_type=value_type)
        return made

    return new
