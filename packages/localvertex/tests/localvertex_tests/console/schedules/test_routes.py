"""The local routes of schedules on a real server: all locations, cron, and a run now that changes nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server for this module."""
    with Server(tmp_path_factory.mktemp("schedules") / "runs") as started:
        yield started


def create(server: Server, spec: dict[str, Any], *, region: str = "us-central1", **fields: Any) -> str:
    """Create a schedule that does not fire during a test, and return its name."""
    parent = f"projects/local-project/locations/{region}"
    parameters = fields.pop("parameters", {})
    job = {"pipelineSpec": spec, "runtimeConfig": {"parameterValues": parameters}}
    body: dict[str, Any] = {"displayName": "yearly", "cron": "0 0 29 2 *", "maxConcurrentRunCount": "1"}
    body["createPipelineJobRequest"] = {"parent": parent, "pipelineJob": job}
    answer = server.request("POST", f"/v1/{parent}/schedules", json=body | fields)
    answer.raise_for_status()
    return str(answer.json()["name"])


def run_now(server: Server, name: str) -> Any:
    return server.request("POST", f"/local/schedules/{name.rpartition('/')[2]}:run", json={})


def stored(server: Server, name: str) -> dict[str, Any]:
    found: dict[str, Any] = server.request("GET", f"/v1/{name}").json()
    return found


def state_of(server: Server, job: str) -> str:
    return str(server.request("GET", f"/v1/{job}").json()["state"])


def test_a_run_now_belongs_to_its_schedule_and_changes_nothing_else_of_it(
    server: Server, light_pipeline: dict[str, Any]
) -> None:
    name = create(server, light_pipeline, region="europe-west4")
    server.request("POST", f"/v1/{name}:pause", json={}).raise_for_status()
    before = stored(server, name)
    answer = run_now(server, name)
    assert answer.status_code == 200, answer.text
    job = answer.json()["name"]
    assert job.startswith("projects/local-project/locations/europe-west4/pipelineJobs/light-")
    assert server.request("GET", f"/v1/{job}").json()["scheduleName"] == name
    wait_until(lambda: state_of(server, job) == "PIPELINE_STATE_SUCCEEDED")
    assert stored(server, name) == before
    runs = server.get(f'/local/runs?filter=schedule="{name.rpartition("/")[2]}"').json()["runs"]
    assert [each["id"] for each in runs] == [job.rpartition("/")[2]]


def test_a_run_now_keeps_the_limit_and_a_schedule_that_is_gone_starts_nothing(
    server: Server, small_pipeline: Path
) -> None:
    name = create(server, json.loads(small_pipeline.read_text()), parameters={"seconds": 600})
    job = run_now(server, name).json()["name"]
    refused = run_now(server, name)
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")
    assert "limit of 1 concurrent runs" in refused.json()["error"]["message"]
    server.request("POST", f"/v1/{job}:cancel", json={}).raise_for_status()
    wait_until(lambda: state_of(server, job) == "PIPELINE_STATE_CANCELLED")
    server.request("DELETE", f"/v1/{name}").raise_for_status()
    assert run_now(server, name).status_code == 404
    assert run_now(server, "a/..").status_code == 404


def test_schedules_of_all_locations_are_listed_with_what_their_cron_means(
    server: Server, light_pipeline: dict[str, Any]
) -> None:
    berlin = {"cron": "TZ=Europe/Berlin 0 3 * * 1", "displayName": "weekly"}
    names = [create(server, light_pipeline), create(server, light_pipeline, region="asia-east1", **berlin)]
    damaged = server.work_dir / "api" / "schedules" / "123.json"
    damaged.write_text("{")
    answer = server.get("/local/schedules").json()
    found = answer["schedules"]
    damaged.unlink()
    assert answer["time_factor"] == 1
    mine = [each for each in found if each["name"] in names]
    assert [each["displayName"] for each in mine] == ["weekly", "yearly"]
    assert mine[0]["zone"] == "Europe/Berlin"
    assert len(mine[0]["next"]) == 5
    assert all("createPipelineJobRequest" not in each for each in found)
    assert found[-1]["state"] == "STATE_UNSPECIFIED"
    assert "damaged" in found[-1]["lastScheduledRunResponse"]["runResponse"]


def test_a_cron_that_is_being_typed_is_answered_with_what_is_wrong(server: Server) -> None:
    def ask(cron: Any) -> Any:
        return server.request("POST", "/local/cron", json={"cron": cron})

    for text in ("", "0 3 * *", "99 * * * *", "TZ=Mars/Olympus 0 3 * * 1", "0 0 31 2 *", "<b>", "*" * 2000):
        answer = ask(text)
        assert (answer.status_code, list(answer.json())) == (200, ["error"]), text
    assert ask(["0 3 * * 1"]).status_code == 400
    good = ask("TZ=Asia/Tokyo 0 3 * * *").json()
    assert (good["zone"], len(good["next"])) == ("Asia/Tokyo", 5)
    assert all(each.endswith("T03:00:00+09:00") for each in good["next"])
