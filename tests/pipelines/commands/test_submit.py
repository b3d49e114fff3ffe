"""`python -m pipelines submit`: the request, and one-line errors of the input and of the service."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from kfp import dsl

from components.release.serving_machines import ServingMachines
from pipelines.image_training import image_training
from pipelines.jobs.pipeline_job import compiled_settings
from pipelines.settings import Settings
from pipelines.steps import StepMachines

PLACE = ("--project", "my-project", "--pipeline-root", "gs://my-bucket/pipelines")


def refused(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    """Return the one-line error of a refused command."""
    assert done.returncode == code, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    return line.removeprefix("error: ")


def own(folder: Path, **settings: Any) -> Path:
    """Compile the pipeline with settings."""
    graph = image_training(Settings(image="us-docker.pkg.dev/p/r/n:1", **settings))
    path = folder / "own.json"
    path.write_text(json.dumps(json_format.MessageToDict(graph.pipeline_spec), sort_keys=True))
    return path


def test_a_dry_run_prints_the_plan_of_an_endpoint(
    pipelines: Any, compiled_training_for_image: Path, tmp_path: Path
) -> None:
    serving = ServingMachines(
        deploy_machine_type="n1-standard-4",
        deploy_max_replicas=3,
        deploy_accelerator_type="NVIDIA_TESLA_T4",
        deploy_accelerator_count=2,
    )
    options = ("-p", "deploy_endpoint=pets")
    done = pipelines("submit", own(tmp_path, serving=serving), *PLACE, *options, "--dry-run")
    assert done.returncode == 0, done.stderr
    first = "deploy: a new champion is deployed on 1 to 3 x n1-standard-4 with 2 x NVIDIA_TESLA_T4"
    for line in (
        f"{first}, and gets all traffic after a live prediction",
        "  endpoint 'pets' in us-central1: created if it does not exist; its old version is undeployed",
        "  it costs money as long as it is deployed, even after the run",
    ):
        assert done.stderr.splitlines().count(line) == 1
    off = pipelines("submit", compiled_training_for_image, *PLACE, "--dry-run")
    assert "deployed" not in off.stderr
    serving = dataclasses.replace(serving, deploy_accelerator_count=3)
    wrong = pipelines("submit", own(tmp_path, serving=serving), *PLACE, *options)
    assert "deployment to 'pets': 3 x NVIDIA_TESLA_T4 on n1-standard-4" in refused(wrong)


def test_a_dry_run_prints_the_request_and_the_plan(pipelines_process: Any, compiled_training_for_image: Path) -> None:
    machines = (
        "replica_count=3",
        "machine_type=g2-standard-12",
        "accelerator_type=NVIDIA_L4",
        "scheduling_strategy=SPOT",
    )
    options = [word for text in machines for word in ("-p", text)]
    job = (
        "--service-account",
        "training@my-project.iam.gserviceaccount.com",
        "--labels",
        "team=vision",
        "--kms-key",
        "k",
    )
    done = pipelines_process(
        "submit", compiled_training_for_image, *PLACE, *job, *options, "--parameter", "epochs=3", "--dry-run"
    )
    assert done.returncode == 0, done.stderr
    request = json.loads(done.stdout)
    assert request["runtimeConfig"]["gcsOutputDirectory"] == "gs://my-bucket/pipelines"
    assert request["runtimeConfig"]["parameterValues"]["epochs"] == 3
    assert request["labels"] == {"team": "vision"}
    assert request["encryptionSpec"] == {"kmsKeyName": "k"}
    assert request["serviceAccount"].startswith("training@")
    for line in (
        "train: 1 x g2-standard-12 with 1 x NVIDIA_L4, SPOT",
        "train: 2 x g2-standard-12 with 1 x NVIDIA_L4 each, SPOT",
        "  quota in us-central1: 36 of aiplatform.googleapis.com/custom_model_training_preemptible_g2_cpus",
        "  quota in us-central1: 3 of aiplatform.googleapis.com/custom_model_training_preemptible_nvidia_l4_gpus",
        "note: --kms-key applies to the steps; for the training job set kms_key in --settings",
    ):
        assert line in done.stderr.splitlines()
    assert "POST https://us-central1-aiplatform.googleapis.com/v1/projects/my-project/" in done.stderr


@pytest.mark.parametrize(
    "value",
    [
        "model=resnet51",
        "learning_rate=-1",
        "minimum_score=95",
    ],
)
def test_a_value_that_a_later_step_would_refuse_is_refused(
    value: str, pipelines: Any, compiled_training_for_image: Path
) -> None:
    done = pipelines("submit", compiled_training_for_image, *PLACE, "--parameter", value, "--dry-run")
    line = refused(done)
    assert value.partition("=")[0] in line or value.partition("=")[2] in line


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"boot_disk_type": "ssd"}, "epochs=1"),
        ({"reservation": "projects/p/zones/us-east1-b/reservations/r"}, "epochs=1"),
        ({"persistent_resource_id": "r"}, "scheduling_strategy=SPOT"),
        ({"timeout_seconds": 10**6}, "scheduling_strategy=FLEX_START"),
    ],
)
def test_settings_that_do_not_go_with_the_run_are_refused(
    settings: dict[str, Any], parameter: str, pipelines: Any, tmp_path: Path
) -> None:
    machines = dataclasses.replace(Settings().machines, **settings)
    line = refused(pipelines("submit", own(tmp_path, machines=machines), *PLACE, "-p", parameter, "--dry-run"))
    assert any(text in line for text in (*map(str, settings), *map(str, settings.values())))


def test_another_pipeline_may_have_a_step_plan_whose_settings_are_known_at_run_time_only() -> None:
    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def find() -> dict:  # type: ignore[type-arg]
        return {}

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def plan(settings: dict) -> None:  # type: ignore[type-arg]
        print(settings)

    @dsl.pipeline(name="other")
    def graph() -> None:
        plan(settings=find().output)

    spec = json_format.MessageToDict(graph.pipeline_spec)
    assert compiled_settings({"pipelineSpec": spec, "runtimeConfig": {"parameterValues": {}}}) == {}


def test_the_machines_of_steps_are_checked_for_the_region(pipelines: Any, tmp_path: Path) -> None:
    steps = StepMachines(prepare_cpus=16, evaluate_accelerator_type="NVIDIA_L4", evaluate_accelerator_count=2)
    own(tmp_path, steps=steps)
    assert pipelines("submit", "own.json", *PLACE, "--dry-run").returncode == 0
    refused(pipelines("submit", "own.json", *PLACE, "--dry-run", "--region", "us-west4"))


def test_a_dry_run_imports_no_cloud_sdk(repository: Path, compiled_training_for_image: Path) -> None:
    words = ["submit", str(compiled_training_for_image), *PLACE, "--dry-run"]
    heavy = ("google.cloud.", "google.auth", "kfp", "tensorflow")
    code = (
        f"import sys; from pipelines.__main__ import main; assert main({words!r}) == 0; "
        f"print([m for m in sys.modules if m.startswith({heavy!r})], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--region", "us-centrl1"),
            "--region is 'us-centrl1', which is not a region with training; did you mean us-central1?",
        ),
        (("--region", ""), "no region given; add --region, e.g. --region us-central1"),
        (("--endpoint", "http://127.0.0.1:abc"), "--endpoint is 'http://127.0.0.1:abc'; Port could not be cast"),
        (("--endpoint", "http://127.0.0.1:99999"), "--endpoint is 'http://127.0.0.1:99999'; Port out of range"),
        (("--project", "No Project"), "--project is 'No Project'; expected a project id such as my-project-123"),
        (("--endpoint", "http://example.com"), "--endpoint is 'http://example.com'; expected localvertex serve"),
        (("--pipeline-root", "my-bucket"), "the pipeline root is 'my-bucket'; expected e.g. gs://my-bucket/pipelines"),
        (("--service-account", "me"), "the service account is 'me'; expected e.g."),
        (("--labels", "Team=vision"), "label Team=vision is not valid: use up to 63 of a-z, 0-9, - and _"),
        (("--labels", "team"), "--labels has 'team'; expected KEY=VALUE"),
        (("-p", "by=1.5"), "parameter 'by' is 1.5; expected NUMBER_INTEGER, such as 3"),
        (("-p", "by=many"), "parameter 'by' is 'many'; expected NUMBER_INTEGER, such as 3"),
        (("-p", "share=NaN"), "parameter 'share' is 'NaN'; expected NUMBER_DOUBLE, such as 0.5"),
        (("-p", "names=a"), "parameter 'names' is 'a'; expected LIST"),
        (("-p", "exact=1"), "parameter 'exact' is 1; expected BOOLEAN, such as true"),
        (("-p", "bye=1"), "the pipeline has no parameter 'bye'; did you mean by?"),
        (("-p", "by"), "--parameter is 'by'; expected NAME=VALUE"),
        (("--parameter-file", "none.yaml"), "none.yaml cannot be read: no such file or directory"),
        ((), "no value for n (NUMBER_INTEGER); give each one, for example by --parameter NAME=VALUE"),
    ],
)
def test_bad_input_is_one_line(pipelines: Any, divide_file: Path, options: tuple[str, ...], message: str) -> None:
    assert refused(pipelines("submit", divide_file, *PLACE, *options, "--dry-run")).startswith(message)


def test_missing_input_is_one_line(pipelines: Any, divide_file: Path, compiled_training: Path, tmp_path: Path) -> None:
    assert refused(pipelines("submit", divide_file)).startswith("no project given; add --project")
    assert refused(pipelines("submit", *PLACE)).startswith(
        "build/image_training.json does not exist; run `python compile.py"
    )
    (tmp_path / "other.json").write_text('{"a": 1}')
    assert refused(pipelines("submit", "other.json", *PLACE)).startswith("other.json is not a compiled pipeline")
    assert "is a placeholder" in refused(pipelines("submit", compiled_training, *PLACE, "--dry-run"))
    wrong = ("-p", "accelerator_count=3")
    assert "this machine type supports 1 per replica" in refused(
        pipelines("submit", compiled_training, *PLACE, *wrong, "--dry-run")
    )


def test_the_default_project_comes_from_the_environment(pipelines: Any, divide_file: Path) -> None:
    root = ("--pipeline-root", "gs://my-bucket/x")
    done = pipelines("submit", divide_file, *root, "-p", "n=1", "--dry-run", GOOGLE_CLOUD_PROJECT="from-environment")
    assert "/projects/from-environment/" in done.stderr


def test_options_override_a_parameter_file(pipelines: Any, divide_file: Path, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("n: 3\nby: 7.0\nnames: [x, y]\n")
    done = pipelines("submit", divide_file, *PLACE, "--parameter-file", "values.yaml", "-p", "n=4", "--dry-run")
    assert json.loads(done.stdout)["runtimeConfig"]["parameterValues"] == {"n": 4, "by": 7, "names": ["x", "y"]}


def test_without_credentials_the_error_has_the_command_to_log_in(pipelines: Any, divide_file: Path) -> None:
    line = refused(pipelines("submit", divide_file, *PLACE, "-p", "n=1"))
    assert line.startswith("no credentials for Google Cloud: run `gcloud auth application-default login`")


@pytest.mark.parametrize(
    ("code", "status", "text", "message"),
    [
        (
            403,
            "PERMISSION_DENIED",
            "Permission 'aiplatform.pipelineJobs.create' denied",
            "permission denied (Permission 'aiplatform.pipelineJobs.create' denied); docs/cloud.md lists the roles",
        ),
        (
            403,
            "PERMISSION_DENIED",
            "Vertex AI API has not been used in project 7",
            "the Vertex AI API is not enabled in local-",
        ),
        (401, "UNAUTHENTICATED", "", "the credentials were not accepted ("),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "metric m exceeded",
            "quota exceeded (metric m exceeded); request more in us-central1",
        ),
        (503, "UNAVAILABLE", "overloaded", "http://127.0.0.1:"),
        (404, "NOT_FOUND", "no such parent", "not found (no such parent)"),
        (400, "INVALID_ARGUMENT", "line one\nline two", "http://127.0.0.1:"),
    ],
)
def test_an_error_of_the_service_is_one_line_with_the_cause_first(
    pipelines: Any, service: Any, divide_file: Path, code: int, status: str, text: str, message: str
) -> None:
    url = service(lambda method, path: (code, {"error": {"code": code, "status": status, "message": text}}))
    line = refused(pipelines("submit", divide_file, "--endpoint", url, "-p", "n=1"), code=1)
    assert line.startswith(message)
    assert " ".join(text.split()) in line


def test_an_unreachable_service_is_one_line(pipelines: Any, divide_file: Path) -> None:
    line = refused(pipelines("submit", divide_file, "--endpoint", "http://127.0.0.1:9", "-p", "n=1"), code=1)
    assert line.startswith("http://127.0.0.1:9 is not available (it cannot be reached: ")
    assert "Connection refused" in line
    assert line.endswith("is `python -m localvertex serve` running?")


def test_the_old_name_of_a_parameter_is_refused_with_the_new_one(
    pipelines: Any, compiled_training_for_image: Path, tmp_path: Path
) -> None:
    expected = "the pipeline has no parameter 'minimum_accuracy'; it is named minimum_score now"
    done = pipelines("submit", compiled_training_for_image, *PLACE, "--parameter", "minimum_accuracy=0.9", "--dry-run")
    assert expected in refused(done)
    (tmp_path / "values.yaml").write_text("minimum_accuracy: 0.9\n")
    words = [*PLACE, "--parameter-file", str(tmp_path / "values.yaml"), "--dry-run"]
    assert expected in refused(pipelines("submit", compiled_training_for_image, *words))
