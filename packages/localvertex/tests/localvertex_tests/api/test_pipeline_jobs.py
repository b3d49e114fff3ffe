"""pipelineJobs through the real SDK: submit, watch, list, cancel, delete."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions

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
