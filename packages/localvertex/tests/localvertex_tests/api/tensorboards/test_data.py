"""The points of time series through the real SDK: read, replaced, sampled, kept, refused as a whole."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions
from localvertex_tests.api.tensorboards.answers import path_of, values

from vertex_testing.server import Server

pytestmark = pytest.mark.slow


def test_points_of_a_step_are_replaced_and_a_restart_keeps_all(start_server: Callable[..., Server], sdk: Any) -> None:
    server = start_server()
    aiplatform = sdk(server)
    top = aiplatform.Tensorboard.create(display_name="kept", is_default=True)
    aiplatform.TensorboardExperiment.create("exp", top.resource_name)
    run = aiplatform.TensorboardRun.create("run-1", tensorboard_experiment_name="exp", tensorboard_id=top.name)
    for name in ("loss", "accuracy"):
        run.create_tensorboard_time_series(display_name=name)
    for step, loss in ((2, 0.5), (1, 1.0), (2, 0.25)):
        run.write_tensorboard_scalar_data({"loss": loss, "accuracy": 0.0}, step=step)
    run.write_tensorboard_scalar_data({"loss": float("nan")}, step=3)
    expected = {"loss": "[(1, 1.0), (2, 0.25), (3, nan)]", "accuracy": "[(1, 0.0), (2, 0.0)]"}
    assert {name: str(each) for name, each in values(run).items()} == expected
    server.end(9)
    sdk(start_server())
    again = aiplatform.TensorboardRun(run.resource_name)
    assert {name: str(each) for name, each in values(again).items()} == expected


def test_a_full_disk_refuses_and_nothing_is_half_written(start_server: Callable[..., Server], sdk: Any) -> None:
    server = start_server()
    aiplatform = sdk(server)
    top = aiplatform.Tensorboard.create(display_name="full")
    experiment = aiplatform.TensorboardExperiment.create("exp", top.resource_name)
    run = aiplatform.TensorboardRun.create("run-1", experiment.resource_name)
    for name in ("loss", "accuracy"):
        run.create_tensorboard_time_series(display_name=name)
    run.write_tensorboard_scalar_data({"loss": 1.0, "accuracy": 1.0}, step=1)
    with server.full_disk():
        with pytest.raises(exceptions.TooManyRequests):
            run.write_tensorboard_scalar_data({"loss": 2.0, "accuracy": 2.0}, step=2)
        with pytest.raises(exceptions.TooManyRequests):
            run.create_tensorboard_time_series(display_name="new")
        with pytest.raises(exceptions.TooManyRequests):
            aiplatform.Tensorboard.create(display_name="new")
        assert values(run) == {"loss": [(1, 1.0)], "accuracy": [(1, 1.0)]}
    run.write_tensorboard_scalar_data({"loss": 2.0}, step=2)
    assert values(run)["loss"] == [(1, 1.0), (2, 2.0)]
    assert [each.display_name for each in aiplatform.Tensorboard.list()] == ["full"]


def test_damaged_files_are_shown_and_can_be_deleted(server: Server, sdk: Any, new_run: Any) -> None:
    run = new_run("damaged", loss="SCALAR", accuracy="SCALAR")
    for step in (1, 2, 3):
        run.write_tensorboard_scalar_data({"loss": float(step)}, step=step)
    series = {each.display_name: each for each in sdk(server).TensorboardTimeSeries.list(run.resource_name)}
    file = server.work_dir / "api" / path_of(series["loss"]) / "points"
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join([lines[0], b"\x00" * 9, *lines[2:]]))
    for _ in range(2):
        assert values(run)["loss"] == [(1, 1.0), (3, 3.0)]
    assert server.text.count(str(file)) == 1
    record = server.work_dir / "api" / f"{path_of(series['accuracy'])}.json"
    record.write_text('{"name": 3}')
    shown = {each.name: each.gca_resource for each in sdk(server).TensorboardTimeSeries.list(run.resource_name)}
    assert "damaged" in shown[series["accuracy"].name].description
    assert "damaged" not in shown[series["loss"].name].description
    body = {"timeSeriesData": [{"tensorboardTimeSeriesId": series["accuracy"].name, "valueType": "SCALAR"}]}
    assert server.call("POST", f"{path_of(run)}:write", body).json()["error"]["status"] == "FAILED_PRECONDITION"
    server.call("DELETE", path_of(series["accuracy"])).raise_for_status()
    assert list(values(run)) == ["loss"]


def test_all_of_many_points_are_read(server: Server, sdk: Any, new_run: Any) -> None:
    run = new_run("many", loss="SCALAR")
    (series,) = sdk(server).TensorboardTimeSeries.list(run.resource_name)
    points = [{"step": step, "scalar": {"value": float(step)}} for step in range(2500)]
    data = {"tensorboard_time_series_id": series.name, "value_type": "SCALAR", "values": points}
    run.api_client.write_tensorboard_run_data(tensorboard_run=run.resource_name, time_series_data=[data])
    steps = [each.step for each in run.read_time_series_data()["loss"].values]
    assert steps == [*range(2500)]


def test_several_programs_write_to_one_run(server: Server, sdk: Any, new_run: Any) -> None:
    run = new_run("together", loss="SCALAR", accuracy="SCALAR")
    path, ids = f"{path_of(run)}:write", list(run._get_time_series_display_name_to_id_mapping().values())
    codes = []

    def write(start: int) -> None:
        for step in range(start, start + 25):
            point = {"step": str(step), "scalar": {"value": 1.0}}
            data = [{"tensorboardTimeSeriesId": each, "valueType": "SCALAR", "values": [point]} for each in ids]
            codes.append(server.call("POST", path, {"timeSeriesData": data}).status_code)

    threads = [threading.Thread(target=write, args=(25 * each,)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [200] * 100
    assert [step for step, _ in values(run)["loss"]] == [*range(100)]
