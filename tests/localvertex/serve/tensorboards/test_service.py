"""Tensorboards, experiments, runs, time series and their points through the real SDK."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions

from tests.support.server import PARENT, Server

pytestmark = pytest.mark.slow


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


def values(run: Any) -> dict[str, list[tuple[int, float]]]:
    """Return the points of all time series of a run."""
    found = run.read_time_series_data()
    return {name: [(each.step, each.scalar.value) for each in data.values] for name, data in found.items()}


def refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["status"]


def path_of(resource: Any) -> str:
    """Return the path of a resource relative to the location."""
    return str(resource.resource_name).removeprefix(f"{PARENT}/")


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
    (loss,) = aiplatform.TensorboardTimeSeries.list(run.resource_name, filter="display_name=loss")
    assert loss.gca_resource.metadata.max_step == 3


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
    assert refused(server.call("POST", f"{path_of(run)}:write", body)) == (400, "FAILED_PRECONDITION")
    server.call("DELETE", path_of(series["accuracy"])).raise_for_status()
    assert list(values(run)) == ["loss"]


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


def test_many_points_are_sampled_with_the_last_one_and_exported_in_pages(
    server: Server, sdk: Any, new_run: Any
) -> None:
    run = new_run("many", loss="SCALAR")
    client, (series,) = run.api_client, sdk(server).TensorboardTimeSeries.list(run.resource_name)
    points = [{"step": step, "scalar": {"value": float(step)}} for step in range(2500)]
    data = {"tensorboard_time_series_id": series.name, "value_type": "SCALAR", "values": points}
    client.write_tensorboard_run_data(tensorboard_run=run.resource_name, time_series_data=[data])
    steps = [each.step for each in run.read_time_series_data()["loss"].values]
    assert (len(steps), steps[0], steps[-1]) == (1000, 0, 2499)
    assert steps == sorted(set(steps))

    def read(**more: Any) -> list[int]:
        request = {"tensorboard_time_series": series.resource_name, **more}
        found = client.read_tensorboard_time_series_data(request=request)
        return [each.step for each in found.time_series_data.values]

    assert len(read(max_data_points=-1)) == 2500
    assert read(max_data_points=1) == [2499]
    assert read(filter="step>=2498") == [2498, 2499]

    def export(**more: Any) -> list[int]:
        request = {"tensorboard_time_series": series.resource_name, **more}
        return [each.step for each in client.export_tensorboard_time_series_data(request=request)]

    assert export() == [*range(2500)]
    assert export(page_size=100, order_by="step desc", filter="step>2000") == [*range(2499, 2000, -1)]


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


POINT = {"step": "1", "scalar": {"value": 1.0}}

WRONG: dict[str, tuple[str, str, Any, str]] = {
    "no display name": ("POST", "", {}, "INVALID_ARGUMENT"),
    "an id for a tensorboard": ("POST", "?tensorboardId=x", {"name": "x", "colour": "red"}, "INVALID_ARGUMENT"),
    "no id": ("POST", "/TOP/experiments", {}, "INVALID_ARGUMENT"),
    "an id in upper case": ("POST", "/TOP/experiments?tensorboardExperimentId=Exp", {}, "INVALID_ARGUMENT"),
    "an id twice": ("POST", "/TOP/experiments?tensorboardExperimentId=wrong", {}, "ALREADY_EXISTS"),
    "no parent": ("POST", "/0/experiments?tensorboardExperimentId=e", {}, "NOT_FOUND"),
    "a run without a name": ("POST", "/TOP/experiments/wrong/runs?tensorboardRunId=r", {}, "INVALID_ARGUMENT"),
    "a display name twice": (
        "POST",
        "/TOP/experiments/wrong/runs?tensorboardRunId=r",
        {"displayName": "run-1"},
        "INVALID_ARGUMENT",
    ),
    "no type": ("POST", "RUN/timeSeries", {"displayName": "x"}, "INVALID_ARGUMENT"),
    "no such tensorboard": ("GET", "/0/experiments", None, "NOT_FOUND"),
    "a mask of another field": ("PATCH", "/TOP?updateMask=runCount", {}, "INVALID_ARGUMENT"),
    "a mask that clears the name": ("PATCH", "RUN?updateMask=displayName", {}, "INVALID_ARGUMENT"),
    "nothing to change": ("PATCH", "/TOP", {}, "INVALID_ARGUMENT"),
    "no series": ("POST", "RUN:write", {"timeSeriesData": [{"valueType": "SCALAR"}]}, "NOT_FOUND"),
    "a series elsewhere": (
        "POST",
        "RUN:write",
        {"timeSeriesData": [{"tensorboardTimeSeriesId": "../x", "values": [POINT]}]},
        "NOT_FOUND",
    ),
    "another type": (
        "POST",
        "RUN:write",
        {"timeSeriesData": [{"tensorboardTimeSeriesId": "SERIES", "values": [POINT, {"blobs": {}}]}]},
        "INVALID_ARGUMENT",
    ),
    "too many points": (
        "POST",
        "RUN:write",
        {"timeSeriesData": [{"tensorboardTimeSeriesId": "SERIES", "values": [POINT] * 5001}]},
        "INVALID_ARGUMENT",
    ),
    "a run of another experiment": (
        "POST",
        "/TOP/experiments/wrong:write",
        {"writeRunDataRequests": [{"tensorboardRun": "projects/p/locations/l/tensorboards/1/experiments/e/runs/r"}]},
        "INVALID_ARGUMENT",
    ),
    "names of others": ("GET", "/TOP:batchRead?timeSeries=x", None, "INVALID_ARGUMENT"),
    "an empty batch": ("POST", "/TOP/experiments/wrong/runs:batchCreate", {}, "INVALID_ARGUMENT"),
    "a wrong order": (
        "POST",
        "RUN/timeSeries/SERIES:exportTensorboardTimeSeries",
        {"orderBy": "scalar"},
        "INVALID_ARGUMENT",
    ),
    "a foreign token": (
        "POST",
        "RUN/timeSeries/SERIES:exportTensorboardTimeSeries",
        {"pageToken": "\u0661\u20dd"},
        "INVALID_ARGUMENT",
    ),
    "a negative limit": ("GET", "RUN/timeSeries/SERIES:read?maxDataPoints=-2", None, "INVALID_ARGUMENT"),
    "an unknown field": ("GET", "RUN/timeSeries/SERIES:read?filter=colour=1", None, "INVALID_ARGUMENT"),
    "blobs": ("GET", "RUN/timeSeries/SERIES:readBlobData", None, "UNIMPLEMENTED"),
    "the size": ("GET", "/TOP:readSize", None, "UNIMPLEMENTED"),
}


def test_wrong_requests_are_refused_and_change_nothing(server: Server, sdk: Any, new_run: Any) -> None:
    run = new_run("wrong", loss="SCALAR")
    (series,) = sdk(server).TensorboardTimeSeries.list(run.resource_name)
    _, top, rest = path_of(run).split("/", 2)
    folder = server.work_dir / "api" / "tensorboards"

    def fill(text: str) -> str:
        return text.replace("RUN", f"/TOP/{rest}").replace("TOP", top).replace("SERIES", series.name)

    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for what, (method, path, body, status) in WRONG.items():
        if isinstance(body, dict) and "timeSeriesData" in body:
            body = {"timeSeriesData": [each | _filled(each, series.name) for each in body["timeSeriesData"]]}
        answer = server.call(method, f"tensorboards{fill(path)}", body)
        assert answer.json()["error"]["status"] == status, (what, answer.text)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def _filled(data: dict[str, Any], series_id: str) -> dict[str, Any]:
    return {key: value.replace("SERIES", series_id) for key, value in data.items() if isinstance(value, str)}
