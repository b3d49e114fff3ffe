"""A model upload becomes a version in the local registry; a notification e-mail becomes a warning."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from google_cloud_pipeline_components.types import artifact_types
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from google_cloud_pipeline_components.v1.vertex_notification_email import VertexNotificationEmailOp
from kfp import dsl

from localvertex.store.model_versions import ModelVersions
from localvertex.store.registry_lock import locked
from vertex_testing.runs import Command, Compile, Execute, FindTask, StartRun
from vertex_testing.server import wait_until


@dsl.pipeline(name="upload")
def upload(name: str = "digits", folder: str = "somewhere", notes: str = "first") -> None:
    imported = dsl.importer(
        artifact_uri=folder,
        artifact_class=artifact_types.UnmanagedContainerModel,
        metadata={"containerSpec": {"imageUri": "us-docker.pkg.dev/serving:1", "healthRoute": "/ok"}},
    )
    first = ModelUploadOp(
        display_name=name,
        description=notes,
        unmanaged_container_model=imported.output,
        location="{{$.pipeline_google_cloud_location}}",
        labels={"team": "vision"},
    ).set_caching_options(False)
    ModelUploadOp(
        display_name=name,
        unmanaged_container_model=imported.output,
        parent_model=first.outputs["model"],
        location="{{$.pipeline_google_cloud_location}}",
    ).set_caching_options(False)


def test_each_upload_is_a_version_with_its_description(
    execute: Execute, task: FindTask, work_dir: Path, tmp_path: Path
) -> None:
    record = execute(upload, {"folder": str(tmp_path), "notes": 'with "quotes"'}, project="p", region="europe-west4")
    assert record["state"] == "SUCCEEDED", record["error"]
    model = json.loads((work_dir / "models" / "digits" / "1" / "model.json").read_text())
    assert model["display_name"] == "digits"
    assert model["description"] == 'with "quotes"'
    assert model["labels"] == {"team": "vision"}
    assert model["artifact_uri"] == str(tmp_path)
    assert model["container_spec"] == {"image_uri": "us-docker.pkg.dev/serving:1", "health_route": "/ok"}
    artifact = task(record, "model-upload")["outputs"]["artifacts"]["model"][0]
    name = "projects/p/locations/europe-west4/models/digits@1"
    assert artifact["metadata"] == {"resourceName": name}
    assert artifact["uri"] == f"https://europe-west4-aiplatform.googleapis.com/v1/{name}"
    second = task(record, "model-upload-2")["outputs"]["artifacts"]["model"][0]
    assert second["metadata"]["resourceName"].endswith("models/digits@2")
    assert [each["resource_name"] for each in record["models"]][1].endswith("@2")
    # Nothing here serves it, so that it is no reason to refuse the run.
    said = [each for each in record["warnings"] if "the model is registered, but cannot be served here: " in each]
    assert [each.partition(":")[0] for each in said] == ["model-upload", "model-upload-2"]


@dsl.pipeline(name="notifies")
def notifies(folder: str, recipients: list = ["a@example.org", "b@example.org"]) -> None:  # noqa: B006
    mail = VertexNotificationEmailOp(recipients=recipients)
    with dsl.ExitHandler(mail):
        dsl.importer(artifact_uri=folder, artifact_class=dsl.Dataset)


def test_a_notification_email_is_a_warning_and_not_sent(execute: Execute, tmp_path: Path) -> None:
    record = execute(notifies, {"folder": str(tmp_path)})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert [
        text for text in record["warnings"] if "Vertex AI would notify a@example.org, b@example.org: SUCCEEDED" in text
    ]
    assert [text for text in record["warnings"] if "#12204" in text] == []


@dsl.pipeline(name="notifies-one")
def notifies_one(folder: str, recipient: str = "a@example.org") -> None:
    mail = VertexNotificationEmailOp(recipients=[recipient, "b@example.org"])
    with dsl.ExitHandler(mail):
        dsl.importer(artifact_uri=folder, artifact_class=dsl.Dataset)


def test_a_parameter_inside_the_list_of_recipients_is_warned_of(execute: Execute, tmp_path: Path) -> None:
    record = execute(notifies_one, {"folder": str(tmp_path), "recipient": "c@example.org"})
    assert record["state"] == "SUCCEEDED", record["error"]
    text = "\n".join(record["warnings"])
    assert "Vertex AI would notify c@example.org, b@example.org: SUCCEEDED" in text
    assert "Vertex AI sends to its placeholder (kubeflow/pipelines#12204)" in text


def test_no_recipient_is_an_error_on_vertex(execute: Execute, tmp_path: Path) -> None:
    record = execute(notifies, {"folder": str(tmp_path), "recipients": []})
    assert [text for text in record["warnings"] if "would notify no recipient, which is an error there" in text]


def test_an_upload_that_waits_for_the_registry_can_be_stopped(start_run: StartRun, tmp_path: Path) -> None:
    staged = tmp_path / "runs" / "models"
    (tmp_path / "files").write_text("weights")
    with locked(tmp_path / "runs"):
        process = start_run(upload, "--parameter", f"folder={tmp_path / 'files'}")
        # The files are copied before the wait.
        wait_until(lambda: process.poll() is not None or [*staged.glob(".digits.*.partial")])
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert [*staged.iterdir()] == []
    assert "Traceback" not in output


KILLED = """
import os, signal, sys
from localvertex.__main__ import main
from localvertex.executors import model_upload
model_upload.write_resource = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


def test_a_step_that_was_killed_after_its_upload_registers_nothing_twice(
    compiled: Compile, command: Command, work_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "files").write_text("weights")
    file, options = compiled(upload), ["--work-dir", str(work_dir), "--parameter", f"folder={tmp_path / 'files'}"]
    words = [sys.executable, "-c", KILLED, "run", str(file), "--run-id", "killed", *options]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    versions = ModelVersions.of(work_dir, "digits")
    assert versions.numbers == ["1"]
    done = command("run", "--resume", "killed", "--work-dir", str(work_dir))
    assert done.returncode == 0, done.stderr
    # The second upload of the pipeline is another step, and another run uploads again.
    assert versions.numbers == ["1", "2"]
    assert command("clean", "--yes", "killed", "--work-dir", str(work_dir)).returncode == 0
    assert command("run", str(file), "--run-id", "killed", "--no-cache", *options).returncode == 0
    assert versions.numbers == ["1", "2", "3", "4"]
