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
    first.update(is_default=True, description="back")
    assert metadata._get_or_create_default_tensorboard().resource_name == first.resource_name
    # Another location has its own default, also one whose name begins alike.
    body = {"displayName": "elsewhere", "isDefault": True}
    other = server.call("POST", "../us-central12/tensorboards", body).json()["response"]["name"]
    assert metadata._get_or_create_default_tensorboard().resource_name == first.resource_name
    second.update(is_default=True)
    (elsewhere,) = server.call("GET", "../us-central12/tensorboards").json()["tensorboards"]
    assert (elsewhere["name"], elsewhere["isDefault"]) == (other, True)
    for each in (first, second):
        each.delete()
    assert aiplatform.Tensorboard.list(filter="is_default=true") == []


def test_each_kind_is_created_listed_changed_and_deleted(server: Server, sdk: Any) -> None:
    aiplatform = sdk(server)
    top = aiplatform.Tensorboard.create(display_name="all kinds", description="d", labels={"a": "1"})
    top.update(display_name="renamed", labels={"a": "2"})
    changed = aiplatform.Tensorboard(top.name).gca_resource
    assert (changed.display_name, changed.description, changed.labels) == ("renamed", "d", {"a": "2"})
    experiment = aiplatform.TensorboardExperiment.create("exp", top.name, display_name="e", labels={"b": "1"})
    run = aiplatform.TensorboardRun.create("run-1", experiment.resource_name, description="r")
    aiplatform.TensorboardRun.create("run-2", experiment.resource_name)
    series = run.create_tensorboard_time_series("loss", plugin_data=b"\x00\xff", description="s")
    assert [each.name for each in aiplatform.TensorboardExperiment.list(top.resource_name)] == ["exp"]
    runs = aiplatform.TensorboardRun.list(experiment.resource_name, order_by="display_name desc")
    assert [each.display_name for each in runs] == ["run-2", "run-1"]
    (found,) = aiplatform.TensorboardTimeSeries.list(run.resource_name, filter='display_name = "loss"')
    assert (found.resource_name, found.gca_resource.plugin_data) == (series.resource_name, b"\x00\xff")
    assert aiplatform.Tensorboard(top.name).gca_resource.run_count == 2
    body = {"displayName": "accuracy"}
    server.call("PATCH", path_of(series), body, params={"updateMask": "displayName"}).raise_for_status()
    assert aiplatform.TensorboardTimeSeries(series.resource_name).display_name == "accuracy"
    run.write_tensorboard_scalar_data({"accuracy": 1.0}, step=1)
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
    run = new_run("batches")
    client, experiment = run.api_client, run.resource_name.partition("/runs/")[0]
    requests = [
        {"parent": experiment, "tensorboard_run_id": f"b-{each}", "tensorboard_run": {"display_name": f"b {each}"}}
        for each in range(3)
    ]
    made = client.batch_create_tensorboard_runs(parent=experiment, requests=requests).tensorboard_runs
    assert [each.display_name for each in made] == ["b 0", "b 1", "b 2"]
    requests[0] |= {"tensorboard_run_id": "b-new", "tensorboard_run": {"display_name": "b new"}}
    with pytest.raises(exceptions.Conflict):
        client.batch_create_tensorboard_runs(parent=experiment, requests=requests)
    assert len(sdk(server).TensorboardRun.list(experiment)) == 4
    series = [
        {"parent": each.name, "tensorboard_time_series": {"display_name": "loss", "value_type": "SCALAR"}}
        for each in made
    ]
    created = client.batch_create_tensorboard_time_series(parent=experiment, requests=series).tensorboard_time_series
    assert [each.name.partition("/timeSeries/")[0] for each in created] == [each.name for each in made]
    with pytest.raises(exceptions.BadRequest, match="already exists"):
        client.batch_create_tensorboard_time_series(parent=experiment, requests=series)

    def data(index: int, series_id: str = "") -> dict[str, Any]:
        point = {"scalar": {"value": 0.5}, "step": index}
        wanted = series_id or created[index].name.rpartition("/")[2]
        return {
            "tensorboard_run": made[index].name,
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
