"""Each call of Google's generated clients: served, or refused as not implemented; operations, batches."""

from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions
from localvertex_tests.api.rest import calls

from vertex_testing.server import PARENT, Server, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table(server: Server) -> str:
    """Ask the server for every method once."""
    return calls.table(server)


def test_the_table_of_the_page_is_what_the_server_answers(table: str) -> None:
    assert calls.PAGE.read_text() == calls.page_with(table), "python -m localvertex_tests.api.rest.calls"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/v1/{PARENT}/datasets/1"),
        ("POST", f"/v1beta1/{PARENT}/endpoints/1:explain"),
        ("GET", f"/ui/{PARENT}"),
        ("POST", f"/v1/{PARENT}/models/m:copy"),
        ("POST", f"/v1/{PARENT}/models:copy"),
    ],
)
def test_a_known_method_is_not_implemented_and_an_unknown_one_not_found(server: Server, method: str, path: str) -> None:
    answer = server.request(method, path, json={} if method == "POST" else None)
    is_known = not path.endswith("m:copy")
    assert answer.status_code == (501 if is_known else 404), answer.text
    assert answer.json()["error"]["status"] == ("UNIMPLEMENTED" if is_known else "NOT_FOUND")


def test_the_operations_of_the_generated_clients(server: Server, sdk: Any) -> None:
    model = sdk(server).Model.upload(display_name="operated", serving_container_image_uri="serving:1")
    client = model.api_client
    name = server.call("GET", "operations").json()["operations"][0]["name"]
    assert client.get_operation({"name": name}).name == name
    assert client.wait_operation({"name": name}).done
    assert name in [each.name for each in client.list_operations({"name": PARENT}).operations]
    client.cancel_operation({"name": name})
    client.delete_operation({"name": name})
    with pytest.raises(exceptions.NotFound):
        client.get_operation({"name": name})


def test_a_batch_cancels_and_deletes_all_jobs_or_none(
    start_server: Callable[..., Server], new_job: Any, sdk: Any
) -> None:
    server = start_server()
    jobs = [new_job(server, job_id=f"batch-{each}", parameter_values={"seconds": 300}) for each in range(2)]
    for job in jobs:
        job.submit()
    client, names = jobs[0].api_client, [each.resource_name for each in jobs]
    ended = new_job(server, job_id="batch-ended")
    ended.submit()
    ended.wait()
    with pytest.raises(exceptions.BadRequest, match="batch-0, batch-1: running"):
        client.batch_delete_pipeline_jobs(parent=PARENT, names=[ended.resource_name, *names])
    with pytest.raises(exceptions.NotFound, match="batch-none"):
        client.batch_cancel_pipeline_jobs(parent=PARENT, names=[*names, f"{PARENT}/pipelineJobs/batch-none"])
    assert {each.state.name for each in jobs} <= {"PIPELINE_STATE_PENDING", "PIPELINE_STATE_RUNNING"}
    done = client.batch_cancel_pipeline_jobs(parent=PARENT, names=[*names, ended.resource_name]).result()
    assert [each.name for each in done.pipeline_jobs] == [*names, ended.resource_name]
    wait_until(lambda: {each.state.name for each in jobs} == {"PIPELINE_STATE_CANCELLED"})
    assert ended.state.name == "PIPELINE_STATE_SUCCEEDED"
    deleted = client.batch_delete_pipeline_jobs(parent=PARENT, names=[*names, names[0]]).result()
    assert [each.name for each in deleted.pipeline_jobs] == names
    left = server.call("GET", "pipelineJobs").json()["pipelineJobs"]
    assert [each["name"] for each in left] == [ended.resource_name]
    # A batch is one operation.
    assert len(server.call("GET", "operations").json()["operations"]) == 2


@pytest.mark.parametrize(
    "names",
    [
        [],
        [f"{PARENT}/pipelineJobs/x{each}" for each in range(33)],
        ["projects/other/locations/us-central1/pipelineJobs/x"],
    ],
)
def test_a_wrong_batch_is_refused(server: Server, names: list[str]) -> None:
    for method in ("batchCancel", "batchDelete"):
        answer = server.call("POST", f"pipelineJobs:{method}", {"names": names})
        assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
