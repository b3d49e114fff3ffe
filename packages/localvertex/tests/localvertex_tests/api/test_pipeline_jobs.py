"""pipelineJobs through the real SDK: submit, watch, list, cancel, delete."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from kfp import dsl

from vertex_testing.runs import STEP, Compile
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow


def test_a_job_is_submitted_watched_and_its_results_are_read(server: Server, new_job: Any) -> None:
    job = new_job(server, job_id="first-job", parameter_values={"n": 4}, labels={"team": "vision"})
    job.submit()
    job.wait()
    assert job.state.name == "PIPELINE_STATE_SUCCEEDED"
    details = {each.task_name: each for each in job.task_details}
    assert details["double"].execution.metadata["output:Output"] == 8
    dataset = details["wait"].outputs["data"].artifacts[0]
    assert (dataset.metadata["rows"], dataset.schema_title) == (3, "system.Dataset")
    assert Path(dataset.uri).read_text() == "rows"
    assert job.gca_resource.service_account == "local-project-compute@developer.gserviceaccount.com"
    # A mask goes through the list of tasks.
    mask = {"readMask": "jobDetail.taskDetails.taskName", "filter": 'display_name:"small*"'}
    listed = server.call("GET", "pipelineJobs", params=mask).json()["pipelineJobs"]
    shown = [each["jobDetail"]["taskDetails"] for each in listed]
    assert ["double", "first-job", "wait"] in [sorted(task["taskName"] for task in tasks) for tasks in shown]
    # The command line sees the same run.
    record = json.loads((server.work_dir / "first-job" / "run.json").read_text())
    assert (record["state"], record["outputs"]["parameters"]) == ("SUCCEEDED", {"Output": 8})


def test_the_settings_of_a_job_are_those_of_a_job_file(server: Server, small_pipeline: Path) -> None:
    config = {
        "gcsOutputDirectory": "gs://bucket/root",
        "failurePolicy": "PIPELINE_FAILURE_POLICY_FAIL_FAST",
    }
    body = {"pipelineSpec": json.loads(small_pipeline.read_text()), "runtimeConfig": config}
    path = "/v1/projects/local-project/locations/us-central1/pipelineJobs?pipelineJobId=settings"
    server.request("POST", path, json=body).raise_for_status()
    path = server.work_dir / "settings" / "run.json"
    wait_until(lambda: json.loads(path.read_text())["state"] == "SUCCEEDED")
    record = json.loads(path.read_text())
    assert record["fail_fast"]
    assert [text for text in record["warnings"] if "gs://bucket/root" in text]


def test_a_running_job_is_cancelled_and_deleted(server: Server, new_job: Any, sdk: Any) -> None:
    job = new_job(server, job_id="to-cancel", parameter_values={"seconds": 300})
    job.submit()
    wait_until(lambda: job.state.name == "PIPELINE_STATE_RUNNING")
    with pytest.raises(Exception, match="cancel it first"):
        job.delete()
    job.cancel()
    job.wait()
    assert job.state.name == "PIPELINE_STATE_CANCELLED"
    job.delete()
    assert not (server.work_dir / "to-cancel").exists()
    assert server.call("GET", "pipelineJobs/to-cancel").status_code == 404


def test_runs_beyond_the_limit_wait_in_their_order_and_can_be_cancelled(
    start_server: Callable[..., Server], new_job: Any
) -> None:
    server = start_server("--max-runs", "1")
    jobs = {}
    for name, seconds in (("first", 300), ("second", 300), ("third", 0), ("fourth", 0)):
        jobs[name] = new_job(server, job_id=name, parameter_values={"seconds": seconds})
        jobs[name].submit()

    def state(name: str) -> str:
        return str(server.call("GET", f"pipelineJobs/{name}").json()["state"]).removeprefix("PIPELINE_STATE_")

    wait_until(lambda: state("first") == "RUNNING")
    assert [state(name) for name in ("second", "third", "fourth")] == ["PENDING"] * 3
    jobs["second"].cancel()
    # It does not wait for the first one, and none of its steps has begun.
    wait_until(lambda: state("second") == "CANCELLED")
    assert state("first") == "RUNNING"
    record = json.loads((server.work_dir / "second" / "run.json").read_text())
    assert {task["start_time"] for task in record["tasks"]} == {None}
    jobs["first"].cancel()
    for name in ("third", "fourth"):
        jobs[name].wait()
        assert state(name) == "SUCCEEDED"
    times = [server.call("GET", f"pipelineJobs/{name}").json() for name in ("first", "third", "fourth")]
    ends, starts = [each["endTime"] for each in times], [each["startTime"] for each in times]
    assert (ends[0] <= starts[1], ends[1] <= starts[2]) == (True, True)


@dsl.component(**STEP)
def start(file: str, folder: str) -> str:
    """Run a compiled file, and try to submit one to the server."""
    import json
    import os
    import subprocess
    import sys
    import urllib.error
    import urllib.request

    words = [sys.executable, "-m", "localvertex", "run", file, "--work-dir", folder, "--run-id", "inner"]
    subprocess.run(words, check=True)
    with open(os.environ["LOCALVERTEX_ENDPOINT"]) as found:
        server = json.load(found)
    with open(file, "rb") as spec:
        body = json.dumps({"pipelineSpec": json.load(spec)}).encode()
    url = f"{server['address']}/v1/projects/local-project/locations/us-central1/pipelineJobs"
    headers = {"Authorization": f"Bearer {server['token']}", "Content-Type": "application/json"}
    try:
        urllib.request.urlopen(urllib.request.Request(url, body, headers))
    except urllib.error.HTTPError as error:
        return str(error.code)
    return "submitted"


@dsl.pipeline(name="starts")
def starts(file: str, folder: str) -> str:
    return start(file=file, folder=folder).output


def test_a_run_of_a_running_run_needs_no_turn(
    start_server: Callable[..., Server], compiled: Compile, light_pipeline: dict[str, Any], tmp_path: Path
) -> None:
    server, file = start_server("--max-runs", "1"), tmp_path / "light.json"
    file.write_text(json.dumps(light_pipeline))
    given = {"file": str(file), "folder": str(tmp_path / "inner")}
    spec = json.loads(compiled(starts).read_text())
    body = {"pipelineSpec": spec, "runtimeConfig": {"parameterValues": given}}
    server.call("POST", "pipelineJobs", body, params={"pipelineJobId": "outer"}).raise_for_status()
    ended = {"PIPELINE_STATE_SUCCEEDED", "PIPELINE_STATE_FAILED"}
    wait_until(lambda: server.call("GET", "pipelineJobs/outer").json()["state"] in ended)
    record = json.loads((server.work_dir / "outer" / "run.json").read_text())
    # A step may not submit: it is refused, where it could wait for ever for a turn that its own run has.
    assert (record["state"], record["outputs"]["parameters"]) == ("SUCCEEDED", {"Output": "403"})
    assert json.loads((tmp_path / "inner" / "inner" / "run.json").read_text())["state"] == "SUCCEEDED"


def test_who_sees_the_end_of_a_run_finds_its_page(server: Server, new_job: Any) -> None:
    job = new_job(server, job_id="with-page")
    job.submit()
    path = server.work_dir / "with-page" / "run.json"
    while json.loads(path.read_text())["state"] in ("PENDING", "RUNNING"):
        pass
    assert (server.work_dir / "with-page" / "run.html").exists()


def test_a_failed_job_reports_the_reason(server: Server, new_job: Any) -> None:
    job = new_job(server, job_id="to-fail", parameter_values={"seconds": -1})
    job.submit()
    with pytest.raises(RuntimeError, match=r"wait: .*sleep length must be non-negative"):
        job.wait()
    assert job.gca_resource.error.code == 9
    states = {each.task_name: each.state.name for each in job.task_details}
    assert states["wait"] == "FAILED"


# The SDK itself calls a logging method that is deprecated.
@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated")
def test_jobs_are_found_by_filter_order_and_page(start_server: Callable[..., Server], new_job: Any, sdk: Any) -> None:
    server = start_server()
    for number in range(3):
        job = new_job(
            server,
            job_id=f"listed-{number}",
            display_name=f"run {number}",
            labels={"even": str(number % 2 == 0).lower()},
        )
        job.submit()
    job.wait()
    aiplatform = sdk(server)

    def found(text: str, **options: Any) -> list[str]:
        return [each.name for each in aiplatform.PipelineJob.list(filter=text, **options)]

    assert found("", order_by="create_time") == ["listed-0", "listed-1", "listed-2"]
    assert found("", order_by="create_time desc", enable_simple_view=True) == ["listed-2", "listed-1", "listed-0"]
    assert found('display_name="run 1"') == ["listed-1"]
    assert sorted(found("labels.even=true AND pipeline_name=small")) == ["listed-0", "listed-2"]
    assert found('state="PIPELINE_STATE_SUCCEEDED" AND display_name="run 2"') == ["listed-2"]
    assert found('create_time>"2100-01-01T00:00:00Z"') == []
    # Pages of one job contain every job once.
    names, token = [], ""
    for _ in range(3):
        page = server.call("GET", "pipelineJobs", params={"pageSize": 1, "pageToken": token}).json()
        names.append(page["pipelineJobs"][0]["name"])
        token = page.get("nextPageToken", "")
    assert (len(set(names)), token) == (3, "")


def test_a_pipeline_that_cannot_run_is_refused_before_anything_is_written(server: Server, new_job: Any) -> None:
    before = sorted(server.work_dir.iterdir())
    with pytest.raises(exceptions.BadRequest, match="expected NUMBER_INTEGER"):
        new_job(server, job_id="bad-parameter", parameter_values={"n": "many"}).submit()
    new_job(server, job_id="taken").submit()
    with pytest.raises(exceptions.Conflict, match="taken already exists"):
        new_job(server, job_id="taken").submit()
    body = {"pipelineSpec": {"root": {}, "deploymentSpec": {}, "schemaVersion": "2.1.0"}}
    response = server.call("POST", "pipelineJobs?pipelineJobId=bad-spec", body)
    assert (response.status_code, response.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert set(server.work_dir.iterdir()) - set(before) <= {server.work_dir / "taken", server.work_dir / ".localvertex"}
    for name in ("bad-parameter", "bad-spec"):
        assert server.call("GET", f"pipelineJobs/{name}").status_code == 404
