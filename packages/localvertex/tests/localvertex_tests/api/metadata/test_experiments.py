"""Experiments through the real SDK, and every REST path that it requests for them."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from localvertex.api.rest import known_methods
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

SEEN: dict[str, set[int]] = defaultdict(set)
"""The methods that the SDK has called in this module, with the HTTP codes of the responses."""

MAY_BE_MISSING = {f"MetadataService.Get{kind}" for kind in ("MetadataStore", "Context", "Artifact", "Execution")}
"""Methods that the SDK calls to see whether something exists."""


@pytest.fixture(scope="module", autouse=True)
def recorded() -> Iterator[None]:
    """Record each request of the SDK, which is sent unchanged."""
    send = requests.Session.send

    def sending(session: requests.Session, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        response = send(session, request, **options)
        path = urlsplit(str(request.url)).path
        method = known_methods.find(str(request.method), path)
        name = method.name if method else f"{request.method} {path}"
        assert not (response.status_code == 404 and "this server has no" in response.text), name
        SEEN[name].add(response.status_code)
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests.Session, "send", sending)
        yield


@pytest.fixture
def aiplatform(server: Server, sdk: Any) -> Iterator[Any]:
    """Point the SDK at the server, and end its experiment after the test."""
    found = sdk(server)
    yield found
    found.metadata.metadata._experiment_tracker.reset()


@pytest.fixture(scope="module")
def metrics_pipeline(compile_pipeline: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile two steps: one writes a dataset and metrics, the other reads the dataset."""
    from kfp import dsl

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def train(rate: float, scores: dsl.Output[dsl.Metrics], data: dsl.Output[dsl.Dataset]) -> None:
        from pathlib import Path

        scores.log_metric("accuracy", 1 - rate)
        Path(data.path).write_text("rows")

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def read(data: dsl.Input[dsl.Dataset]) -> str:
        from pathlib import Path

        return Path(data.path).read_text()

    @dsl.pipeline(name="with-metrics")
    def pipeline(rate: float = 0.25) -> None:
        trained = train(rate=rate).set_caching_options(False)
        read(data=trained.outputs["data"])

    return compile_pipeline(pipeline, tmp_path_factory.mktemp("compiled") / "metrics.json")


def test_runs_with_parameters_metrics_and_artifacts(aiplatform: Any) -> None:
    aiplatform.init(experiment="digits", experiment_description="small", experiment_tensorboard=False)
    with aiplatform.start_run("one") as run:
        aiplatform.log_params({"rate": 0.1, "layers": 3, "name": "x"})
        aiplatform.log_metrics({"loss": 2})
        aiplatform.log_metrics({"loss": 1, "accuracy": 0.9})
        aiplatform.log_classification_metrics(
            labels=["cat", "dog"], matrix=[[9, 1], [2, 8]], fpr=[0.1], tpr=[0.7], threshold=[0.5], display_name="cm"
        )
        with aiplatform.start_execution(schema_title="system.ContainerExecution", display_name="train") as execution:
            rows = aiplatform.Artifact.create(schema_title="system.Dataset", uri="gs://b/rows", metadata={"rows": 3})
            execution.assign_input_artifacts([rows])
            model = aiplatform.Artifact.create(schema_title="system.Model", uri="gs://b/model")
            execution.assign_output_artifacts([model])
    aiplatform.start_run("two")
    aiplatform.log_params({"rate": 0.2})
    aiplatform.end_run(state=aiplatform.gapic.Execution.State.FAILED)
    with aiplatform.start_run("two", resume=True):
        aiplatform.log_metrics({"accuracy": 0.5})
    frame = aiplatform.get_experiment_df("digits").set_index("run_name").sort_index()
    assert list(frame.state) == ["COMPLETE", "COMPLETE"]
    assert list(frame["param.rate"]) == [0.1, 0.2]
    assert list(frame["metric.accuracy"]) == [0.9, 0.5]
    assert (frame.loc["one", "param.layers"], frame.loc["one", "metric.loss"]) == (3, 1)
    again = aiplatform.ExperimentRun("one", experiment="digits")
    assert again.get_params() == {"rate": 0.1, "layers": 3, "name": "x"}
    (confusion,) = again.get_classification_metrics()
    assert (confusion["matrix"], confusion["tpr"]) == ([[9, 1], [2, 8]], [0.7])
    assert {each.uri for each in again.get_artifacts()} == {"gs://b/rows", "gs://b/model", ""}
    assert [each.display_name for each in again.get_executions()] == ["train"]
    assert [each.uri for each in execution.get_input_artifacts()] == ["gs://b/rows"]
    assert [each.uri for each in execution.get_output_artifacts()] == ["gs://b/model"]
    assert aiplatform.Artifact.get_with_uri("gs://b/rows").metadata == {"rows": 3}
    assert "digits" in [each.name for each in aiplatform.Experiment.list()]
    assert sorted(each.name for each in aiplatform.ExperimentRun.list(experiment="digits")) == ["one", "two"]
    assert run.state.name == "COMPLETE"
    aiplatform.Experiment("digits").delete()
    assert "digits" not in [each.name for each in aiplatform.Experiment.list()]
    assert aiplatform.Artifact.get_with_uri("gs://b/rows").resource_name == rows.resource_name


def test_artifacts_executions_and_contexts_by_themselves(aiplatform: Any) -> None:
    artifact = aiplatform.Artifact.create("system.Dataset", resource_id="own", display_name="a")
    # Without credentials, Execution.create of google-cloud-aiplatform 1.165.1 uses a type in their place.
    how = {"display_name": "a", "credentials": artifact.credentials}
    created = {
        "artifact": artifact,
        "execution": aiplatform.Execution.create("system.Run", resource_id="own", **how),
        "context": aiplatform.Context.create("system.Experiment", resource_id="own", display_name="a"),
    }
    for each in created.values():
        kind = type(each)
        each.update(metadata={"k": {"deep": 1}, "n": 2}, description="changed")
        each.update(metadata={"k": {"other": 2}})
        found = kind(each.resource_name)
        assert found.metadata == {"k": {"deep": 1, "other": 2}, "n": 2}
        assert (found.description, found.display_name) == ("changed", "a")
        listed = kind.list(filter='display_name="a"', order_by="create_time desc")
        assert [item.resource_name for item in listed] == [each.resource_name]
        assert kind.get("none") is None
        assert kind.get_or_create("own", "x").resource_name == each.resource_name
    child = aiplatform.Context.create("system.ExperimentRun", resource_id="own-child")
    created["context"].add_context_children([child])
    child.add_artifacts_and_executions([created["artifact"].resource_name], [created["execution"].resource_name])
    created["execution"].assign_output_artifacts([created["artifact"]])
    graph = child.query_lineage_subgraph()
    assert [len(part) for part in (graph.artifacts, graph.executions, graph.events)] == [1, 1, 1]
    assert aiplatform.Context("own-child").parent_contexts == [created["context"].resource_name]
    for each in (child, *created.values()):
        each.delete()
        assert type(each).get(each.name) is None


def test_pipelines_of_an_experiment(server: Server, aiplatform: Any, metrics_pipeline: Path, tmp_path: Path) -> None:
    def job(name: str, **parameters: float) -> Any:
        return aiplatform.PipelineJob(
            display_name="x",
            template_path=str(metrics_pipeline),
            pipeline_root=str(tmp_path),
            job_id=name,
            parameter_values=parameters,
        )

    jobs = {name: job(name, rate=rate) for name, rate in (("metrics-1", 0.25), ("metrics-2", 0.5))}
    for each in jobs.values():
        each.submit(experiment="pipelines")
    alone = job("metrics-3", rate=0.75)
    alone.submit()
    for each in (*jobs.values(), alone):
        each.wait()
    frame = aiplatform.get_experiment_df("pipelines").set_index("run_name").sort_index()
    assert list(frame.index) == ["metrics-1", "metrics-2"]
    assert list(frame["param.rate"]) == [0.25, 0.5]
    assert list(frame["metric.accuracy"]) == [0.75, 0.5]
    assert set(frame.state) == {"COMPLETE"}
    assert set(frame.run_type) == {"system.PipelineRun"}
    every = aiplatform.get_pipeline_df("with-metrics").set_index("run_name").sort_index()
    assert list(every["param.input:rate"]) == [0.25, 0.5, 0.75]
    assert list(every["metric.accuracy"]) == [0.75, 0.5, 0.25]
    by_name = {each.name: each for each in aiplatform.PipelineJob.list(filter='pipeline_name="with-metrics"')}
    assert by_name["metrics-1"].get_associated_experiment().name == "pipelines"
    assert by_name["metrics-3"].get_associated_experiment() is None
    aiplatform.init(experiment="pipelines", experiment_tensorboard=False)
    with aiplatform.start_run("by-hand") as run:
        run.log(pipeline_job=alone)
    assert [each.name for each in run.get_logged_pipeline_jobs()] == ["metrics-3"]
    details = {each.task_name: each for each in aiplatform.PipelineJob.get("metrics-1").task_details}
    read = aiplatform.Execution(details["read"].execution.name)
    (data,) = read.get_input_artifacts()
    assert (data.schema_title, Path(data.uri).read_text()) == ("system.Dataset", "rows")
    train = aiplatform.Execution(details["train"].execution.name)
    assert {each.schema_title for each in train.get_output_artifacts()} == {"system.Dataset", "system.Metrics"}
    assert (train.state.name, train.metadata["input:rate"]) == ("COMPLETE", 0.25)


def test_an_experiment_is_joined_while_the_run_goes_on(
    server: Server, aiplatform: Any, new_job: Callable[..., Any]
) -> None:
    job = new_job(server, parameter_values={"seconds": 600.0})
    job.submit(experiment="running")
    # The run is in the experiment before its first task has begun, so its state may be NEW for a moment.
    wait_until(lambda: list(aiplatform.get_experiment_df("running").state) == ["RUNNING"])
    assert list(aiplatform.get_experiment_df("running").run_name) == [job.name]
    job.cancel()
    wait_until(job.done)
    assert list(aiplatform.get_experiment_df("running").state) == ["CANCELLED"]


def test_the_sdk_called_nothing_that_is_missing() -> None:
    """Run last: the paths of all tests above."""
    assert len(SEEN) > 24, SEEN
    for name, codes in SEEN.items():
        assert name.partition(".")[0] in {"MetadataService", "PipelineService"}, name
        assert 200 in codes, (name, codes)
        assert codes <= ({200, 404} if name in MAY_BE_MISSING else {200}), (name, codes)
