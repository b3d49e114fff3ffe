"""Wrong requests to tensorboards: each gets its error, and nothing changes."""

from typing import Any

import pytest
from localvertex_tests.api.tensorboards.answers import path_of

from vertex_testing.server import Server

pytestmark = pytest.mark.slow


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
    "an empty batch": ("POST", "/TOP/experiments/wrong:batchCreate", {}, "INVALID_ARGUMENT"),
    "an unknown field": ("GET", "RUN/timeSeries?filter=colour=1", None, "INVALID_ARGUMENT"),
    "an update": ("PATCH", "/TOP?updateMask=displayName", {"displayName": "x"}, "UNIMPLEMENTED"),
    "an export": ("POST", "RUN/timeSeries/SERIES:exportTensorboardTimeSeries", {}, "UNIMPLEMENTED"),
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
