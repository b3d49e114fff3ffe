"""The exit handler as a user starts it: what is sent, what Google's e-mail operation gets, and where no address is."""

import json
import os
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import compiler, dsl

from components.summary.summary import summary
from components.summary.webhook import VARIABLE
from tests.support.receiver import PATH, Answer, receiving
from vertex_testing.runs import STEP
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

FAILS = "model=resnet51"
"""A parameter that the first step refuses."""

LocalRun = Callable[..., tuple[subprocess.CompletedProcess[str], dict[str, Any]]]


@pytest.fixture
def local_run(python: str, tmp_path: Path) -> LocalRun:
    """Runs a compiled file in the test's folder; returns what a shell would see, and the record."""

    def run(file: Path, *parameters: str, **variables: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        given = [f"--parameter={each}" for each in parameters]
        words = [python, "-m", "localvertex", "run", str(file), "--work-dir", str(tmp_path / "runs"), *given]
        done = subprocess.run(words, env=os.environ | variables, capture_output=True, text=True)
        records = list((tmp_path / "runs").glob("*/run.json"))
        return done, json.loads(records[0].read_text()) if records else {}

    return run


def files_with(folder: Path, address: str) -> list[Path]:
    """Return the files that contain the address, its path or its last part."""
    parts = [text.encode() for text in (address, PATH, PATH.rpartition("/")[2])]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    return [path for path in files if any(part in path.read_bytes() for part in parts)]


@pytest.mark.parametrize("answer", [200, 404])
def test_a_failed_run_is_sent_with_the_error_of_its_step(
    local_run: LocalRun, compiled_training: Path, tmp_path: Path, answer: Answer
) -> None:
    with receiving(answer) as receiver:
        done, record = local_run(compiled_training, FAILS, **{VARIABLE: receiver.address})
        ((_, _, body),) = receiver.received
        assert (done.returncode, record["state"]) == (1, "FAILED")
        assert body["text"].splitlines()[0] == f"{record['run_id']}: FAILED"
        assert "prepare: exit code 2: error: model='resnet51' is not known" in body["text"]
        log = (tmp_path / "runs" / record["run_id"] / "summary" / "log.txt").read_text()
        result = "sent to" if answer == 200 else "not sent to"
        assert f"\nnotification {result} the webhook in {VARIABLE}" in log
        assert "FAILED: prepare: exit code 2" in log
        assert files_with(tmp_path / "runs", receiver.address) == []
        assert PATH not in done.stdout + done.stderr


@dsl.component(**STEP)
def shows_its_variables() -> str:
    import os
    from urllib.parse import urlsplit

    address = os.environ["IMAGE_TRAINING_WEBHOOK"]
    # As the errors of urllib3 show it.
    print(dict(os.environ), "Max retries exceeded with url:", urlsplit(address).path)
    return address + " " + urlsplit(address).path


@dsl.pipeline(name="curious")
def curious() -> None:
    with dsl.ExitHandler(summary()):
        shows_its_variables()


@dsl.pipeline(name="broken")
def broken() -> None:
    container = {"image_uri": "python:3.11", "command": ["python3", "-c", "raise ValueError('no images at all')"]}
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
    with dsl.ExitHandler(summary()):
        CustomTrainingJobOp(display_name="train", worker_pool_specs=[pool])


def compiled(pipeline: Any, path: Path) -> Path:
    with warnings.catch_warnings():
        # kfp 2.17 deprecates JSON output, which Vertex AI accepts.
        warnings.simplefilter("ignore")
        compiler.Compiler().compile(pipeline, str(path))
    return path


def test_the_error_of_a_custom_job_is_sent(local_run: LocalRun, tmp_path: Path) -> None:
    with receiving(200) as receiver:
        done, _ = local_run(compiled(broken, tmp_path / "broken.json"), **{VARIABLE: receiver.address})
        assert done.returncode == 1
        ((_, _, body),) = receiver.received
        assert "ValueError: no images at all" in body["text"]
        assert files_with(tmp_path / "runs", receiver.address) == []


def test_a_step_that_prints_and_returns_the_address_leaves_none_in_the_records(
    local_run: LocalRun, tmp_path: Path
) -> None:
    with receiving(200) as receiver:
        done, record = local_run(compiled(curious, tmp_path / "curious.json"), **{VARIABLE: receiver.address})
        assert (done.returncode, record["state"]) == (0, "SUCCEEDED")
        assert [body["text"] for _, _, body in receiver.received] == [f"{record['run_id']}: SUCCEEDED"]
        assert files_with(tmp_path / "runs", receiver.address) == []
        assert PATH not in done.stdout + done.stderr


def test_a_run_of_the_server_is_sent_too(
    compiled_training: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving(200) as receiver:
        monkeypatch.setenv(VARIABLE, receiver.address)
        with Server(tmp_path / "runs") as server:
            spec = json.loads(compiled_training.read_text())
            job = {
                "displayName": "x",
                "pipelineSpec": spec,
                "runtimeConfig": {"parameterValues": {"model": "resnet51"}},
            }
            assert server.call("POST", "pipelineJobs?pipelineJobId=sent-1", job).status_code == 200
            wait_until(lambda: "FAILED" in server.call("GET", "pipelineJobs/sent-1").json().get("state", ""))
        ((_, _, body),) = receiver.received
        assert body["text"].startswith("sent-1: FAILED\n")
        assert "model='resnet51' is not known" in body["text"]
        assert files_with(tmp_path / "runs", receiver.address) == []


def test_the_addresses_of_the_settings_are_those_of_the_e_mail(
    local_run: LocalRun, python: str, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "project.yaml").write_text("notify: [b@example.org, c@example.org]\n")
    words = [python, "compile.py", "--output-dir", str(tmp_path), "--settings", str(tmp_path / "project.yaml")]
    subprocess.run(words, cwd=repository, check=True, capture_output=True)
    done, record = local_run(tmp_path / "image_training.json", FAILS)
    assert (done.returncode, record["state"]) == (1, "FAILED")
    found = [
        text for text in record["warnings"] if "Vertex AI would notify b@example.org, c@example.org: FAILED" in text
    ]
    assert len(found) == 1
