"""No operation of Google's runs for real."""

import importlib
import warnings
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from localvertex_tests.credentials.operations import POOL, compile_operation

import localvertex
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask, ReadLog

with warnings.catch_warnings():
    # Deprecated, but in many compiled files.
    warnings.simplefilter("ignore")
    from google_cloud_pipeline_components.preview import custom_job as preview_custom_job

REFUSED = {
    "v1.bigquery": ["BigqueryQueryJobOp", "BigqueryMLFeatureImportanceJobOp"],
    "v1.model": ["ModelExportOp"],
    "v1.dataflow": ["DataflowPythonJobOp"],
    "v1.dataproc": ["DataprocPySparkBatchOp"],
    "v1.automl.training_job": ["AutoMLImageTrainingJobRunOp", "AutoMLTabularTrainingJobRunOp"],
    "v1.model_evaluation": ["ModelEvaluationRegressionOp"],
    "v1.forecasting": ["ForecastingValidationOp"],
    "preview.dataflow": ["DataflowFlexTemplateJobOp"],
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in REFUSED.items() for name in names])
def test_an_operation_is_refused_before_anything_is_written(
    module: str, name: str, command: Command, tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        operation = getattr(importlib.import_module(f"google_cloud_pipeline_components.{module}"), name)
    compile_operation(operation, tmp_path / "one.yaml")
    done = command("run", "one.yaml")
    assert done.returncode == 2, done.stdout + done.stderr
    step = operation.pipeline_spec.root.dag.tasks
    assert any(f"root.dag.tasks.{each}: " in done.stderr for each in step)
    assert "run the pipeline on Vertex AI" in done.stderr or "--image" in done.stderr
    assert not (tmp_path / "runs").exists()


MODULE = "google_cloud_pipeline_components.container.v1.bigquery.query_job.launcher"


def forms(words: list[str], env: dict[str, str] | None = None) -> Any:
    @dsl.container_component
    def form() -> dsl.ContainerSpec:
        return dsl.ContainerSpec(image="python:3.11", command=words[:1], args=words[1:])

    @dsl.pipeline(name="form")
    def one() -> None:
        task = form()
        for name, value in (env or {}).items():
            task.set_env_variable(name, value)

    return one


@dsl.component(**STEP)
def in_source() -> None:
    from google_cloud_pipeline_components.container.v1.bigquery.query_job import launcher

    launcher.main([])


@dsl.pipeline(name="inner")
def inner() -> None:
    in_source()


@dsl.pipeline(name="nested")
def nested(n: int = 0) -> None:
    with dsl.If(n == 1):
        inner()


@pytest.mark.parametrize(
    "pipeline",
    [
        forms(["python3", "-m", MODULE]),
        forms(["python3", f"-m{MODULE}"]),
        forms(["sh", "-c", f"exec python3 -u -m {MODULE} --payload {{}}"]),
        forms(["env", "A=b", "python3", "-m", MODULE]),
        forms(["python3", f"/usr/lib/{MODULE.replace('.', '/')}.py"]),
        forms(["python3", "-c", f"import runpy; runpy.run_module('{MODULE}')"]),
        forms(["sh", "-c", "python3 -m $LAUNCHER"], {"LAUNCHER": MODULE}),
        forms(["sh", "-c", "python3 -m google_cloud_pipeline_components.container.v1.custom_job.launcher"]),
        inner,
        nested,
    ],
    ids=["module", "joined", "shell", "env", "file", "runpy", "variable", "local-in-a-shell", "source", "nested"],
)
def test_a_launcher_is_found_in_every_form(pipeline: Any, compiled: Compile, work_dir: Path) -> None:
    with pytest.raises(localvertex.Refused, match="of google-cloud-pipeline-components would run in Google Cloud"):
        localvertex.prepare(compiled(pipeline), options=localvertex.Options(work_dir=work_dir))


def test_a_local_command_for_the_image_does_not_lift_the_refusal(compiled: Compile, work_dir: Path) -> None:
    options = localvertex.Options(work_dir=work_dir, command_prefixes={"python:3.11": ("env",)})
    with pytest.raises(localvertex.Refused, match="would run in Google Cloud"):
        localvertex.prepare(compiled(forms(["python3", "-m", MODULE])), options=options)


@dsl.container_component
def run_module(module: str) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="python:3.11", command=["python3", "-m", module])


@dsl.pipeline(name="late")
def late(module: str, pools: list) -> None:
    run_module(module=module)
    preview_custom_job.CustomTrainingJobOp(display_name="j", worker_pool_specs=pools)


def test_a_launcher_that_only_the_run_knows_does_not_start(execute: Execute, task: FindTask, log_text: ReadLog) -> None:
    container = {"image_uri": "python:3.11", "command": ["python3", "-m", MODULE]}
    record = execute(late, {"module": MODULE, "pools": [POOL | {"container_spec": container}]})
    for name in ("run-module", "custom-training-job"):
        entry = task(record, name)
        assert entry["state"] == "FAILED"
        assert "does not run here" in entry["error"]
        assert entry["attempts"] == 1
        assert entry["log"] is None or "usage" not in log_text(record, entry)


@dsl.component(**STEP)
def read_spec(text: str) -> str:
    return text[:5]


@dsl.container_component
def echo(text: str) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="python:3.11", command=["python3", "-c", "print('ran')"], args=[text])


@dsl.pipeline(name="submits")
def submits(text: str) -> None:
    read_spec(text=text)
    read_spec(text=text).set_env_variable("A", "b")
    echo(text=text)


def test_a_launcher_in_the_data_of_a_step_is_no_command(execute: Execute, compiled: Compile) -> None:
    spec = compiled(forms(["python3", "-m", MODULE]), "inner.json").read_text()
    record = execute(submits, {"text": spec})
    assert record["state"] == "SUCCEEDED", record["error"]


def test_credentials_do_not_lift_the_refusal(compiled: Compile, command: Command, tmp_path: Path) -> None:
    compiled(forms(["python3", "-m", MODULE]))
    refused = command("run", "pipeline.json", "--with-credentials")
    assert (refused.returncode, "would run in Google Cloud" in refused.stderr) == (2, True)
    assert not (tmp_path / "runs").exists()


@dsl.component(**STEP)
def train(steps: int) -> None:
    print(f"trained {steps} steps")


@dsl.pipeline(name="preview")
def preview(pools: list, resource: str = "my-cluster") -> None:
    preview_custom_job.CustomTrainingJobOp(display_name="j", worker_pool_specs=pools, persistent_resource_id=resource)
    preview_custom_job.CustomTrainingJobOp(display_name="default", worker_pool_specs=pools)
    preview_custom_job.create_custom_training_job_from_component(
        train, display_name="wrapped", machine_type="n1-standard-4"
    )(steps=3)


def test_preview_custom_jobs_run_like_v1(execute: Execute, task: FindTask, work_dir: Path, log_text: ReadLog) -> None:
    machine = {"machine_type": "n1-standard-4", "accelerator_type": "NVIDIA_TESLA_T4", "accelerator_count": "1"}
    program = "import os; print('spec', os.environ['CLUSTER_SPEC'])"
    container = {"image_uri": "python:3.11", "command": ["python3", "-c", program]}
    record = execute(preview, {"pools": [POOL | {"machine_spec": machine, "container_spec": container}]}, run_id="r")
    assert record["state"] == "SUCCEEDED", record["error"]
    shown = (work_dir / "r" / "custom-training-job" / "workerpool0-0.log").read_text()
    assert '\\"persistent_resource_id\\": \\"my-cluster\\"' in shown
    assert "persistent_resource_id" not in (work_dir / "r" / "custom-training-job-2" / "workerpool0-0.log").read_text()
    assert "trained 3 steps" in (work_dir / "r" / "train" / "workerpool0-0.log").read_text()
    resources = task(record, "custom-training-job")["outputs"]["parameters"]["gcp_resources"]
    assert "customJobs/" in resources
