"""Tensorboards, experiments, runs and time series through the real SDK."""

from typing import Any

import pytest
from google.api_core import exceptions
from localvertex_tests.api.tensorboards.answers import path_of, values

from vertex_testing.server import Server

pytestmark = pytest.mark.slow


def test_a_location_has_one_default_tensorboard_which_init_finds_again(server: Server, sdk: Any) -> None:
    aiplatform = sdk(server)
    from google.cloud.aiplatform.metadata import metadata

    first = metadata._get_or_create_default_tensorboard()
    assert metadata._get_or_create_default_tensorboard().resource_name == first.resource_name
    second = aiplatform.Tensorboard.create(display_name="second", is_default=True)
    assert [each.name for each in aiplatform.Tensorboard.list(filter="is_default=true")] == [second.name]
    assert first.name in [each.name for each in aiplatform.Tensorboard.list(filter="is_default=false")]
    # Another location has its own default, including one whose name begins alike.
    body = {"displayName": "elsewhere", "isDefault": True}
    other = server.call("POST", "../us-central12/tensorboards", body).json()["response"]["name"]
    assert metadata._get_or_create_default_tensorboard().resource_name == second.resource_name
    (elsewhere,) = server.call("GET", "../us-central12/tensorboards").json()["tensorboards"]
    assert (elsewhere["name"], elsewhere["isDefault"]) == (other, True)
    for each in (first, second):
        each.delete()
    assert aiplatform.Tensorboard.list(filter="is_default=true") == []


def test_each_kind_is_created_listed_and_deleted(server: Server, sdk: Any) -> None:
    aiplatform = sdk(server)
    top = aiplatform.Tensorboard.create(display_name="all kinds", description="d", labels={"a": "1"})
    made = aiplatform.Tensorboard(top.name).gca_resource
    assert (made.display_name, made.description, made.labels) == ("all kinds", "d", {"a": "1"})
    experiment = aiplatform.TensorboardExperiment.create("exp", top.name, display_name="e", labels={"b": "1"})
    run = aiplatform.TensorboardRun.create("run-1", experiment.resource_name, description="r")
    aiplatform.TensorboardRun.create("run-2", experiment.resource_name)
    series = run.create_tensorboard_time_series("loss", plugin_data=b"\x00\xff", description="s")
    assert [each.name for each in aiplatform.TensorboardExperiment.list(top.resource_name)] == ["exp"]
    runs = aiplatform.TensorboardRun.list(experiment.resource_name, order_by="display_name desc")
    assert [each.display_name for each in runs] == ["run-2", "run-1"]
    (found,) = aiplatform.TensorboardTimeSeries.list(run.resource_name, filter='display_name = "loss"')
    assert (found.resource_name, found.gca_resource.plugin_data) == (series.resource_name, b"\x00\xff")
    run.write_tensorboard_scalar_data({"loss": 1.0}, step=1)
    folder = server.work_dir / "api" / path_of(run)
    assert list(folder.rglob("points"))
    run.delete()
    assert not folder.exists()
    for gone in (run, series):
        with pytest.raises(exceptions.NotFound):
            type(gone)(gone.resource_name)
    # What had the name before does not come back with it.
    assert values(aiplatform.TensorboardRun.create("run-1", experiment.resource_name)) == {}
    top.delete()
    assert not [each for each in (server.work_dir / "api" / "tensorboards").iterdir() if top.name in each.name]
    with pytest.raises(exceptions.NotFound):
        aiplatform.TensorboardExperiment(experiment.resource_name)


def test_a_batch_is_created_and_written_as_a_whole_or_not_at_all(server: Server, sdk: Any, new_run: Any) -> None:
    run, aiplatform = new_run("batches"), sdk(server)
    client, experiment = run.api_client, run.resource_name.partition("/runs/")[0]
    made = [
        run,
        aiplatform.TensorboardRun.create("run-2", experiment),
        aiplatform.TensorboardRun.create("run-3", experiment),
    ]
    series = [
        {"parent": each.resource_name, "tensorboard_time_series": {"display_name": "loss", "value_type": "SCALAR"}}
        for each in made
    ]
    created = client.batch_create_tensorboard_time_series(parent=experiment, requests=series).tensorboard_time_series
    assert [each.name.partition("/timeSeries/")[0] for each in created] == [each.resource_name for each in made]
    with pytest.raises(exceptions.BadRequest, match="already exists"):
        client.batch_create_tensorboard_time_series(parent=experiment, requests=series)

    def data(index: int, series_id: str = "") -> dict[str, Any]:
        point = {"scalar": {"value": 0.5}, "step": index}
        wanted = series_id or created[index].name.rpartition("/")[2]
        return {
            "tensorboard_run": made[index].resource_name,
            "time_series_data": [{"tensorboard_time_series_id": wanted, "value_type": "SCALAR", "values": [point]}],
        }

    with pytest.raises(exceptions.NotFound):
        client.write_tensorboard_experiment_data(
            tensorboard_experiment=experiment, write_run_data_requests=[data(0), data(1, "nothing")]
        )
    top = experiment.partition("/experiments/")[0]
    names = [each.name for each in created]

    def read() -> list[list[int]]:
        found = client.batch_read_tensorboard_time_series_data(request={"tensorboard": top, "time_series": names})
        return [[point.step for point in each.values] for each in found.time_series_data]

    assert read() == [[], [], []]
    client.write_tensorboard_experiment_data(
        tensorboard_experiment=experiment, write_run_data_requests=[data(0), data(1), data(2)]
    )
    assert read() == [[0], [1], [2]]
