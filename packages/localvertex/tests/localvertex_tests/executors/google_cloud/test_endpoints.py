"""GCPC's operations of endpoints and batch prediction, with a real serving container."""

import json
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.types import artifact_types
from google_cloud_pipeline_components.v1.batch_predict_job import ModelBatchPredictOp
from google_cloud_pipeline_components.v1.endpoint import (
    EndpointCreateOp,
    EndpointDeleteOp,
    ModelDeployOp,
    ModelUndeployOp,
)
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from kfp import dsl
from localvertex_tests.support import serving

import localvertex
from localvertex.containers.choice import Choice
from localvertex.runner import engine
from localvertex.values import configuration
from vertex_testing.runs import Compile, Execute, FindTask

LOCATION = "{{$.pipeline_google_cloud_location}}"

CONTAINER = {
    "containerSpec": {
        "imageUri": "serving:1",
        "command": ["python", "-P", serving.__file__],
        "healthRoute": "/health",
        "predictRoute": "/predict",
    }
}

ENTRY_POINT = {"containerSpec": {"imageUri": "serving:1"}}


def uploaded(folder: str, container: dict[str, Any]) -> Any:
    imported = dsl.importer(
        artifact_uri=folder, artifact_class=artifact_types.UnmanagedContainerModel, metadata=container
    )
    task = ModelUploadOp(display_name="served", unmanaged_container_model=imported.output, location=LOCATION)
    return task.set_caching_options(False)


@dsl.pipeline(name="deploy")
def deploy(folder: str, undeploys: bool = False) -> None:
    model = uploaded(folder, CONTAINER)
    endpoint = EndpointCreateOp(display_name="live", labels={"team": "v"}, location=LOCATION)
    deployed = ModelDeployOp(
        model=model.outputs["model"],
        endpoint=endpoint.outputs["endpoint"],
        traffic_split={"0": "100"},
        dedicated_resources_machine_type="n1-standard-2",
        dedicated_resources_min_replica_count=1,
        dedicated_resources_max_replica_count=1,
    )
    with dsl.If(undeploys == True):  # noqa: E712
        undeployed = ModelUndeployOp(model=model.outputs["model"], endpoint=endpoint.outputs["endpoint"])
        undeployed.after(deployed)
        EndpointDeleteOp(endpoint=endpoint.outputs["endpoint"]).after(undeployed)


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def upload(model: dsl.Output[artifact_types.VertexModel]) -> None:
    raise RuntimeError("this step must not run")


@dsl.pipeline(name="deploy-given")
def deploy_given() -> None:
    endpoint = EndpointCreateOp(display_name="live", location=LOCATION)
    ModelDeployOp(
        model=upload().outputs["model"],
        endpoint=endpoint.outputs["endpoint"],
        traffic_split={"0": "100"},
        dedicated_resources_machine_type="n1-standard-2",
        dedicated_resources_min_replica_count=1,
        dedicated_resources_max_replica_count=1,
    )


@dsl.pipeline(name="refused")
def deploys_an_entry_point(folder: str) -> None:
    endpoint = EndpointCreateOp(display_name="live", location=LOCATION)
    ModelDeployOp(model=uploaded(folder, ENTRY_POINT).outputs["model"], endpoint=endpoint.outputs["endpoint"])


@dsl.pipeline(name="refused-batch")
def predicts_with_an_entry_point(folder: str) -> None:
    imported = dsl.importer(
        artifact_uri=folder, artifact_class=artifact_types.UnmanagedContainerModel, metadata=ENTRY_POINT
    )
    ModelBatchPredictOp(job_display_name="b", unmanaged_container_model=imported.output, location=LOCATION)


@dsl.pipeline(name="batch")
def batch(
    folder: str,
    sources: list,
    prefix: str,
    key: str = "",
    excluded: list = [],  # noqa: B006
    kind: str = "",
) -> None:
    ModelBatchPredictOp(
        job_display_name="batch",
        model=uploaded(folder, CONTAINER).outputs["model"],
        gcs_source_uris=sources,
        gcs_destination_output_uri_prefix=prefix,
        key_field=key,
        excluded_fields=excluded,
        instance_type=kind,
        model_parameters={"top": "1"},
        manual_batch_tuning_parameters_batch_size=2,
        machine_type="n1-standard-2",
        location=LOCATION,
    ).set_caching_options(False)


@pytest.fixture
def model_folder(tmp_path: Path) -> str:
    """Return a folder with a model."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("w")
    return str(tmp_path / "model")


def test_a_given_model_is_registered_and_deployed(
    execute: Execute, task: FindTask, compiled: Compile, work_dir: Path, tmp_path: Path, model_folder: str
) -> None:
    file, toml = compiled(deploy_given), tmp_path / "localvertex.toml"
    model = f'artifact = "{Path(model_folder).name}", image = "serving:1"'
    toml.write_text(f"[step.upload]\noutputs = {{model = {{{model}}}}}\n")
    with pytest.raises(localvertex.Refused, match="the serving container has no command") as refused:
        execute(file, configuration=configuration.read(toml))
    assert refused.value.proposal.startswith("[step.model-deploy]")
    command = json.dumps(["python", "-P", serving.__file__])
    toml.write_text(f"[step.upload]\noutputs = {{model = {{{model}, command = {command}}}}}\n")
    record = execute(file, configuration=configuration.read(toml))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert (task(record, "upload")["state"], record["models"]) == ("GIVEN", [])
    (artifact,) = task(record, "upload")["outputs"]["artifacts"]["model"]
    (version,) = (work_dir / "models").glob("given-upload*/1")
    assert artifact["metadata"]["resourceName"].endswith(f"/models/{version.parent.name}@1")
    assert (version / "model" / "weights").read_text() == Path(model_folder, "weights").read_text()


def resource_of(record: Any, task: FindTask, name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(task(record, name)["outputs"]["parameters"]["gcp_resources"])["resources"][0]
    return found


def test_a_pipeline_deploys_a_model(execute: Execute, task: FindTask, work_dir: Path, model_folder: str) -> None:
    record = execute(deploy, {"folder": model_folder})
    assert record["state"] == "SUCCEEDED", record["error"]
    (file,) = (work_dir / "endpoints").glob("*/endpoint.json")
    endpoint = json.loads(file.read_text())
    (deployed,) = endpoint["deployedModels"]
    assert (endpoint["displayName"], endpoint["labels"]) == ("live", {"team": "v"})
    assert endpoint["trafficSplit"] == {deployed["id"]: 100}
    assert (deployed["modelVersionId"], deployed["displayName"]) == ("1", "served")
    (artifact,) = task(record, "endpoint-create")["outputs"]["artifacts"]["endpoint"]
    assert artifact["metadata"] == {"resourceName": endpoint["name"]}
    assert artifact["uri"].endswith(f".googleapis.com/v1/{endpoint['name']}")
    for name in ("endpoint-create", "model-deploy"):
        resource = resource_of(record, task, name)
        assert (resource["resourceType"], "/operations/" in resource["resourceUri"]) == ("VertexLro", True)


@pytest.mark.slow
def test_a_pipeline_undeploys_a_model_and_deletes_the_endpoint(
    execute: Execute, work_dir: Path, model_folder: str
) -> None:
    record = execute(deploy, {"folder": model_folder, "undeploys": True})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert list((work_dir / "endpoints").iterdir()) == []


@pytest.mark.parametrize("pipeline", [deploys_an_entry_point, predicts_with_an_entry_point])
def test_a_container_without_a_command_is_refused_before_the_run(
    pipeline: Any, compiled: Compile, work_dir: Path, model_folder: str
) -> None:
    with pytest.raises(localvertex.Refused, match="has no command, and the entry point of its image") as refused:
        localvertex.prepare(
            compiled(pipeline),
            parameters={"folder": model_folder},
            options=localvertex.Options(work_dir=work_dir),
        )
    assert refused.value.proposal.startswith("[step.")
    assert not work_dir.exists()


@dsl.pipeline(name="machines")
def with_machines(folder: str, machine: str, accelerator: str = "", count: int = 0) -> None:
    model = uploaded(folder, CONTAINER).outputs["model"]
    endpoint = EndpointCreateOp(display_name="live", location=LOCATION)
    ModelDeployOp(
        model=model,
        endpoint=endpoint.outputs["endpoint"],
        dedicated_resources_machine_type=machine,
        dedicated_resources_min_replica_count=1,
        dedicated_resources_accelerator_type=accelerator,
        dedicated_resources_accelerator_count=count,
    )
    ModelBatchPredictOp(
        job_display_name="b",
        model=model,
        machine_type=machine,
        accelerator_type=accelerator,
        accelerator_count=count,
        location=LOCATION,
    )


@pytest.mark.parametrize(
    ("parameters", "texts"),
    [
        ({"machine": "n1-giant"}, ["'n1-giant' is not a machine type", "parameter machine"]),
        ({"machine": "n1-standard-4", "accelerator": "NVIDIA_TESLA_T4", "count": 3}, ["NVIDIA_TESLA_T4", "3"]),
        ({"machine": "n1-standard-2"}, []),
    ],
)
def test_machines_that_the_service_does_not_have_are_refused_before_the_run(
    parameters: dict[str, Any], texts: list[str], compiled: Compile, work_dir: Path, model_folder: str
) -> None:
    def check() -> None:
        engine.check(
            compiled(with_machines),
            parameters={"folder": model_folder, **parameters},
            options=localvertex.Options(work_dir=work_dir),
        )

    if not texts:
        return check()
    with pytest.raises(localvertex.Refused) as refused:
        check()
    assert all(each in str(refused.value) for each in texts)
    assert not work_dir.exists()


def lines_of(folder: Path, name: str) -> list[Any]:
    files = sorted(folder.glob(f"prediction-served-*/{name}-*"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_a_batch_prediction_writes_predictions_and_errors(
    execute: Execute, task: FindTask, tmp_path: Path, model_folder: str
) -> None:
    bucket = tmp_path / "buckets" / "bucket"
    (bucket / "in").mkdir(parents=True)
    rows = [{"name": f"n{index}", "x": index, "note": "long"} for index in range(5)]
    text = "".join(f"{json.dumps(row)}\n" for row in rows[:3])
    (bucket / "in" / "1.jsonl").write_text(f'{text}{{"name": \n"text"\n{{"x": 1}}\n')
    (bucket / "in" / "2.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows[3:]))
    parameters = {"folder": model_folder, "sources": ["gs://bucket/in/*.jsonl"], "prefix": "gs://bucket/out"}
    parameters |= {"key": "name"}
    record = execute(batch, parameters, gcs_root=tmp_path / "buckets")
    assert record["state"] == "SUCCEEDED", record["error"]
    found = lines_of(bucket / "out", "prediction.results")
    assert [each["key"] for each in found] == [f"n{index}" for index in range(5)]
    assert [each["prediction"]["instance"] for each in found] == [{"x": index, "note": "long"} for index in range(5)]
    errors = lines_of(bucket / "out", "prediction.errors_stats")
    assert [each["error"]["code"] for each in errors] == [3, 3, 3]
    assert [each["error"]["message"][:15] for each in errors] == [
        "the line is not",
        "expected a JSON",
        "the key field '",
    ]
    (folder,) = (bucket / "out").iterdir()
    assert sorted(each.name for each in folder.iterdir()) == [
        f"{name}-0000{index}-of-00002" for name in ("prediction.errors_stats", "prediction.results") for index in (0, 1)
    ]
    (artifact,) = task(record, "model-batch-predict")["outputs"]["artifacts"]["gcs_output_directory"]
    assert artifact["uri"] == f"gs://bucket/out/{folder.name}"
    assert resource_of(record, task, "model-batch-predict")["resourceType"] == "BatchPredictionJob"
    assert any("3 of 8 lines have no prediction" in text for text in record["warnings"])


def test_an_instance_that_the_container_refuses_does_not_spoil_the_others(
    execute: Execute, tmp_path: Path, model_folder: str
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('"a"\n"bad"\n[1, 2]\n"odd"\n\n7\n')
    record = execute(batch, {"folder": model_folder, "sources": [str(source)], "prefix": str(tmp_path / "out")})
    assert record["state"] == "SUCCEEDED", record["error"]
    found = lines_of(tmp_path / "out", "prediction.results")
    assert [(each["instance"], each["prediction"]["instance"]) for each in found] == [
        (each, each) for each in ("a", [1, 2], 7)
    ]
    errors = lines_of(tmp_path / "out", "prediction.errors_stats")
    assert [(each["instance"], each["error"]["code"]) for each in errors] == [("bad", 3), ("odd", 13)]


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        ('"bad"\n', {}, "none of 1 lines has a prediction"),
        ('"crash"\n', {}, "no answer from the serving container"),
        ("1\n", {"sources": ["none.jsonl"]}, "there is no such file"),
        ("1\n", {"kind": "array"}, "instance_type: of the options for instances only key_field runs locally"),
        ("1\n", {"excluded": ["note"]}, "excluded_fields: of the options for instances only key_field runs locally"),
        ("1\n", {"prefix": ""}, "only files are written locally"),
        ("1\n", {"prefix": "/dev/null"}, "cannot be created: Not a directory"),
    ],
)
def test_a_batch_prediction_that_has_failed(
    text: str, more: dict[str, Any], reason: str, execute: Execute, tmp_path: Path, model_folder: str
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(text)
    parameters = {"folder": model_folder, "sources": [str(source)], "prefix": str(tmp_path / "out")} | more
    record = execute(batch, parameters)
    assert record["state"] == "FAILED"
    assert reason in record["error"]


CONFINED = {"containerSpec": {"imageUri": "serving:1", "command": ["sh", "-c", "ls $AIP_STORAGE_URI; exit 1"]}}


@dsl.pipeline(name="private")
def predicts_with_private_files(folder: str, sources: list, prefix: str) -> None:
    imported = dsl.importer(
        artifact_uri=folder, artifact_class=artifact_types.UnmanagedContainerModel, metadata=CONFINED
    )
    ModelBatchPredictOp(
        job_display_name="b",
        unmanaged_container_model=imported.output,
        gcs_source_uris=sources,
        gcs_destination_output_uri_prefix=prefix,
        machine_type="n1-standard-2",
        location=LOCATION,
    )


def test_a_confined_container_does_not_see_a_home_directory(
    execute: Execute, task: FindTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if problem := Choice().how.problem:
        pytest.skip(problem)
    home, source = tmp_path / "home", tmp_path / "in.jsonl"
    home.mkdir()
    (home / "planted").touch()
    monkeypatch.setenv("HOME", str(home))
    source.write_text("1\n")
    values = {"folder": str(home), "sources": [str(source)], "prefix": str(tmp_path / "out")}
    record = execute(predicts_with_private_files, values)
    found = task(record, "model-batch-predict")
    assert found["state"] == "FAILED"
    assert "contain your home directory" in found["error"]
    assert not [path for path in tmp_path.rglob("container.log") if "planted" in path.read_text()]
