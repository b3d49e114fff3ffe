"""`python -m pipelines custom-job`: the job of the step `plan`, printed and really run."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from components.container_image import PLACEHOLDER_IMAGE
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compiled(python: str, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image training pipeline with its placeholder image, and a small dataset next to it."""
    folder = tmp_path_factory.mktemp("compiled")
    for words in (
        ["compile.py", "--output-dir", str(folder)],
        ["-m", "trainer.prepare", "digits", str(folder / "dataset"), "--max-examples=200"],
    ):
        subprocess.run([python, *words], cwd=repository, check=True, capture_output=True)
    return folder


def test_the_job_is_printed_and_the_same_job_trains(pipelines: Any, server: Server, compiled: Path) -> None:
    words = (
        "custom-job",
        compiled / "image_training.json",
        "--dataset",
        compiled / "dataset",
        *server.endpoint,
        "--pipeline-root",
        "gs://my-bucket/pipelines",
        "-p",
        "max_steps=2",
        "-p",
        "machine_type=n1-standard-8",
        "-p",
        "accelerator_type=",
        "-p",
        "accelerator_count=0",
    )
    shown = pipelines(*words, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    job = json.loads(shown.stdout)
    spec = job["jobSpec"]
    (pool,) = spec["workerPoolSpecs"]
    assert pool["machineSpec"] == {"machineType": "n1-standard-8"}
    assert "--max-steps=2" in pool["containerSpec"]["args"]
    run_id = job["displayName"].rpartition("-")[2]
    base = {"outputUriPrefix": f"gs://my-bucket/pipelines/training/{run_id}"}
    assert spec["baseOutputDirectory"] == base
    done = pipelines(*words)
    assert done.returncode == 0, done.stderr
    number = done.stdout.strip().rpartition("/")[2]
    ended = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED")
    resource = wait_until(
        lambda: found if (found := server.call("GET", f"customJobs/{number}").json())["state"] in ended else None
    )
    assert resource["state"] == "JOB_STATE_SUCCEEDED", resource
    result = (
        server.work_dir / "buckets" / "my-bucket" / "pipelines" / "training" / run_id / "checkpoints" / "result.json"
    )
    assert json.loads(result.read_text())["identity"]["max_steps"] == 2


def test_the_job_has_the_machine_parameters(pipelines: Any, server: Server, compiled: Path) -> None:
    root = ("--dataset", compiled / "dataset", *server.endpoint, "--pipeline-root", "gs://my-bucket/pipelines")
    words = ("custom-job", compiled / "image_training.json", *root, "--dry-run", "-p", "boot_disk_size_gb=200")
    shown = pipelines(*words, "-p", "scheduling_strategy=FLEX_START", "-p", "max_wait_seconds=3600")
    spec = json.loads(shown.stdout)["jobSpec"]
    assert spec["scheduling"]["maxWaitDuration"] == "3600s"
    assert spec["workerPoolSpecs"][0]["diskSpec"] == {"bootDiskSizeGb": 200}
    shown = pipelines(*words, "-p", "persistent_resource_id=pool-1")
    spec = json.loads(shown.stdout)["jobSpec"]
    assert spec["persistentResourceId"] == "pool-1"
    assert "maxWaitDuration" not in spec["scheduling"]
    done = pipelines(*words, "-p", "persistent_resource_id=pool-1", "-p", "reservation=ANY")
    assert (done.returncode, done.stdout) == (2, "")
    assert "exclude each other" in done.stderr.splitlines()[-1]


def test_a_dataset_that_the_job_cannot_read_is_refused_and_a_local_path_works_from_any_folder(
    pipelines: Any, server: Server, compiled: Path, tmp_path: Path
) -> None:
    words = ("custom-job", compiled / "image_training.json", "--pipeline-root", "gs://my-bucket/pipelines")
    done = pipelines(*words, "--dataset", compiled / "dataset", "--project", "my-project")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    # The placeholder image is refused first; with a real image it is the dataset.
    assert "is a placeholder" in line
    image = "us-docker.pkg.dev/project/images/image-training-python@sha256:" + "b" * 64
    text = (compiled / "image_training.json").read_text().replace(PLACEHOLDER_IMAGE, image)
    (tmp_path / "real.json").write_text(text)
    real = ("custom-job", "real.json", "--pipeline-root", "gs://my-bucket/pipelines", "--project", "my-project")
    done = pipelines(*real, "--dataset", compiled / "dataset")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert "which Google's machines cannot read; copy it to a bucket" in line
    done = pipelines(*real, "--dataset", "gs://my-bucket/dataset")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: no credentials for Google Cloud: run `gcloud auth application-default login`")
    (tmp_path / "here").symlink_to(compiled / "dataset")
    shown = pipelines(*words, "--dataset", "here", *server.endpoint, "--dry-run")
    args = json.loads(shown.stdout)["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]
    assert f"--dataset={tmp_path / 'here'}" in args


@pytest.mark.parametrize("answer", [(500, {"error": "boom"}), (200, {"status": "ok"})])
def test_a_lost_answer_names_the_job_that_may_be_running(
    pipelines: Any, service: Any, compiled: Path, answer: Any
) -> None:
    url = service(lambda method, path: answer)
    words = ("custom-job", compiled / "image_training.json", "--dataset", compiled / "dataset", "--endpoint", url)
    done = pipelines(*words, "--pipeline-root", "gs://my-bucket/pipelines")
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"error: {url} is not available (it answered with ")
    assert line.endswith(f" may be running: look at {url}/ before you submit again")


def test_a_file_whose_plan_has_fewer_inputs_is_refused(
    pipelines: Any, server: Server, compiled: Path, tmp_path: Path
) -> None:
    spec = json.loads((compiled / "image_training.json").read_text())
    for dag in [each["dag"] for each in (spec["root"], *spec["components"].values()) if "dag" in each]:
        for task in dag["tasks"].values():
            if task["componentRef"]["name"] == "comp-plan":
                del task["inputs"]["parameters"]["epochs"]
    del spec["components"]["comp-plan"]["inputDefinitions"]["parameters"]["epochs"]
    (tmp_path / "fewer.json").write_text(json.dumps(spec))
    root = ("--pipeline-root", "gs://my-bucket/x")
    done = pipelines("custom-job", tmp_path / "fewer.json", "--dataset", "d", *root, *server.endpoint, "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("error: the pipeline has no epochs; compile it again")


def test_weights_that_only_the_pipeline_can_look_up_are_refused(pipelines: Any, compiled: Path) -> None:
    words = ("custom-job", compiled / "image_training.json", "--pipeline-root", "gs://my-bucket/x")
    here = ("--endpoint", "http://127.0.0.1:8700")
    done = pipelines(*words, "--dataset", "d", *here, "-p", "weights=model:pets@champion", "--dry-run")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("submit the pipeline instead")


def test_a_file_without_the_step_plan_is_refused(pipelines: Any, divide_file: Path) -> None:
    root = ("--pipeline-root", "gs://my-bucket/x", "--project", "my-project")
    done = pipelines("custom-job", divide_file, "--dataset", "d", *root, "-p", "n=1", "--dry-run")
    assert done.returncode == 2
    assert done.stderr == "error: the pipeline has no step 'plan'; custom-job needs a file from `python compile.py`\n"
