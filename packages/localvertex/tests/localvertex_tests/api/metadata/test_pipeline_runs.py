"""Pipeline runs in the metadata, without a server: each one completely and once, whatever happens in between."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localvertex.api.rest.call import Call, Location
from localvertex.commands.service import Service
from vertex_testing.server import Server, wait_until

LOCATION = Location(project="local-project", region="us-central1")

ROOT = f"{LOCATION.name}/metadataStores/default"

FOLDER = "api/metadata/local-project/us-central1/metadataStores/default"


class Api:
    """A server's methods in this process."""

    def __init__(self, work_dir: Path) -> None:
        self.log: list[str] = []
        self.service = Service(work_dir, time_factor=1, log=self.log.append)

    def ask(self, path: str, name: str, resource_id: str = "", body: Any = None, **query: str) -> dict[str, Any]:
        """Call a method of a collection; `default/contexts` is one of the default metadata store."""
        store, _, kind = path.rpartition("/")
        collection = f"metadataStores/{{store:id}}/{kind}" if store else kind
        call = Call(
            location=LOCATION,
            resource_id=resource_id,
            parents={"store": store},
            query=query,
            body=body or {},
        )
        return self.service.collections[collection][name][2](call)

    def names(self, kind: str, **query: str) -> list[str]:
        """Return the ids of the nodes of a kind."""
        found = self.ask(f"default/{kind}", "list", **query)[kind]
        return sorted(each["name"].rpartition("/")[2] for each in found)

    def run(self, spec: dict[str, Any], job_id: str, **parameters: Any) -> dict[str, Any]:
        """Run a pipeline to its end and return the job."""
        body = {"pipelineSpec": spec, "runtimeConfig": {"parameterValues": parameters}}
        self.ask("pipelineJobs", "create", body=body, pipelineJobId=job_id)
        wait_until(lambda: "endTime" in self.ask("pipelineJobs", "get", job_id))
        return self.ask("pipelineJobs", "get", job_id)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Api]]:
    """Start servers one after the other on the same work folder."""
    started: list[Api] = []

    def start() -> Api:
        for each in started:
            each.service.pipeline_jobs.close()
        started.append(Api(tmp_path))
        return started[-1]

    yield start
    for each in started:
        each.service.pipeline_jobs.close()


def test_a_run_with_its_contexts_executions_and_artifacts(
    start: Callable[[], Api], light_pipeline: dict[str, Any]
) -> None:
    api = start()
    job = api.run(light_pipeline, "one", x="z")
    contexts = job["jobDetail"]["pipelineContext"], job["jobDetail"]["pipelineRunContext"]
    assert [each["name"].rpartition("/")[2] for each in contexts] == ["light", "one"]
    assert [each["schemaTitle"] for each in contexts] == ["system.Pipeline", "system.PipelineRun"]
    assert contexts[1]["parentContexts"] == [contexts[0]["name"]]
    for context in contexts:
        inside = f'in_context("{context["name"]}")'
        executions = api.ask("default/executions", "list", filter=inside)["executions"]
        assert {each["schemaTitle"]: each["state"] for each in executions} == {
            "system.Run": "COMPLETE",
            "system.ContainerExecution": "COMPLETE",
        }
        (run,) = (each for each in executions if each["schemaTitle"] == "system.Run")
        assert (run["displayName"], run["metadata"]["input:x"]) == ("one", "z")
        (artifact,) = api.ask("default/artifacts", "list", filter=inside)["artifacts"]
        assert (artifact["schemaTitle"], artifact["uri"], artifact["state"]) == ("system.Dataset", "/tmp", "LIVE")
        graph = api.ask("default/contexts", "lineage", context["name"].rpartition("/")[2])
        assert [(each["type"], each["artifact"]) for each in graph["events"]] == [("OUTPUT", artifact["name"])]
    tasks = {each["execution"]["name"] for each in job["jobDetail"]["taskDetails"]}
    assert {each["name"] for each in executions} == tasks
    for mask in ("", "name,job_detail.pipeline_run_context", "*"):
        (listed,) = api.ask("pipelineJobs", "list", readMask=mask)["pipelineJobs"]
        assert listed["jobDetail"]["pipelineRunContext"]["name"] == contexts[1]["name"]


def test_a_run_is_completed_after_a_kill_at_any_write(
    start: Callable[[], Api], light_pipeline: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, folder, order = start(), tmp_path / FOLDER, list[Path]()
    replace = os.replace

    def note_and_replace(source: Path, target: Path) -> None:
        replace(source, target)
        if target.is_relative_to(folder):
            order.append(target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", note_and_replace)
        api.run(light_pipeline, "one")
        api.names("contexts")
    assert sorted(order) == sorted(folder.rglob("*.json"))
    assert order[-1] == folder / "pipelineRuns" / "one.json"
    expected = [api.names(kind) for kind in ("contexts", "executions", "artifacts")]
    events = api.ask("default/contexts", "lineage", "one")["events"]
    for written in range(len(order)):
        for path in order[written:]:
            path.unlink(missing_ok=True)
        again = start()
        assert [again.names(kind) for kind in ("contexts", "executions", "artifacts")] == expected
        assert again.ask("default/contexts", "lineage", "one")["events"] == events


def test_what_users_change_and_delete_stays_so(start: Callable[[], Api], light_pipeline: dict[str, Any]) -> None:
    api = start()
    api.run(light_pipeline, "one")
    api.run(light_pipeline, "two")
    api.ask("default/contexts", "create", contextId="exp", body={"schemaTitle": "system.Experiment"})
    children = {"childContexts": [f"{ROOT}/contexts/one"]}
    api.ask("default/contexts", "addChildren", "exp", children)
    api.ask("default/contexts", "delete", "two")
    (artifact,) = api.names("artifacts", filter=f'in_context("{ROOT}/contexts/one")')
    api.ask("default/artifacts", "patch", artifact, {"displayName": "renamed"})
    for each in (api, start()):
        assert each.names("contexts") == ["exp", "light", "one"]
        assert each.ask("default/artifacts", "get", artifact)["displayName"] == "renamed"
        run = each.ask("pipelineJobs", "get", "one")["jobDetail"]["pipelineRunContext"]
        assert set(run["parentContexts"]) == {f"{ROOT}/contexts/exp", f"{ROOT}/contexts/light"}
    # A new job of the same id is another run.
    again = start()
    old = again.names("executions")
    again.ask("pipelineJobs", "delete", "two")
    again.run(light_pipeline, "two")
    assert again.names("contexts") == ["exp", "light", "one", "two"]
    assert len(again.names("executions")) == len(old) + 2
    assert len(again.names("executions", filter=f'in_context("{ROOT}/contexts/two")')) == 2


def test_contexts_of_users_keep_their_names(start: Callable[[], Api], light_pipeline: dict[str, Any]) -> None:
    api = start()
    for name in ("light", "one"):
        api.ask("default/contexts", "create", contextId=name, body={"schemaTitle": "system.Experiment"})
    job = api.run(light_pipeline, "one")
    assert api.names("contexts") == ["light", "light-pipeline", "one", "one-pipelinerun"]
    assert job["jobDetail"]["pipelineRunContext"]["name"] == f"{ROOT}/contexts/one-pipelinerun"
    assert api.ask("default/contexts", "get", "one")["schemaTitle"] == "system.Experiment"


def test_damaged_records_hurt_no_other_run(
    start: Callable[[], Api], light_pipeline: dict[str, Any], tmp_path: Path
) -> None:
    api = start()
    for name in ("bad-job", "bad-run", "bad-context", "good"):
        api.run(light_pipeline, name)
    api.names("contexts")
    (tmp_path / FOLDER / "pipelineRuns" / "bad-context.json").unlink()
    (tmp_path / FOLDER / "pipelineRuns" / "good.json").write_text("{")
    (tmp_path / FOLDER / "contexts" / "bad-context.json").write_text("{")
    (tmp_path / "api" / "pipelineJobs" / "bad-job.json").write_text("{")
    (tmp_path / "bad-run" / "run.json").write_text("{")
    again = start()
    for _ in range(2):
        assert again.names("contexts") == ["bad-context", "bad-job", "bad-run", "good", "light"]
        assert len(again.ask("pipelineJobs", "list")["pipelineJobs"]) == 4
    assert again.names("contexts", filter='schema_title="system.PipelineRun"') == ["bad-job", "bad-run", "good"]
    assert len([each for each in again.log if "bad-context" in each and "cannot be written yet" in each]) == 1
    again.ask("default/contexts", "delete", "bad-context")
    assert again.ask("default/contexts", "get", "bad-context")["schemaTitle"] == "system.PipelineRun"


@pytest.mark.slow
def test_a_full_disk_refuses_and_loses_nothing(
    start_server: Callable[..., Server], light_pipeline: dict[str, Any]
) -> None:
    server = start_server()
    root, folder = "metadataStores/default", server.work_dir / FOLDER
    created = server.call("POST", f"{root}/contexts", {"displayName": "old"}, params={"contextId": "c"}).json()
    run = server.call("POST", "pipelineJobs", {"pipelineSpec": light_pipeline}, params={"pipelineJobId": "one"})
    assert run.ok
    wait_until(lambda: "endTime" in server.call("GET", "pipelineJobs/one").json())
    wait_until(lambda: (folder / "pipelineRuns" / "one.json").exists())
    server.end()
    # As if the server had been killed before it added the run.
    for path in [*folder.rglob("one.json"), folder / "contexts" / "light.json"]:
        path.unlink()
    server = start_server()
    with server.full_disk():
        for method, path, body in (
            ("POST", f"{root}/contexts?contextId=new", {}),
            ("PATCH", f"{root}/contexts/c", {"displayName": "new"}),
        ):
            answer = server.call(method, path, body)
            assert (answer.status_code, answer.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
        assert server.call("GET", f"{root}/contexts").json() == {"contexts": [created]}
        context = server.call("GET", "pipelineJobs/one").json()["jobDetail"]["pipelineRunContext"]
        assert context["name"].endswith("/contexts/one")
    found = server.call("GET", f"{root}/contexts").json()["contexts"]
    assert {each["name"].rpartition("/")[2] for each in found} == {"c", "one", "light"}
