"""gs:// in the inputs of a pipeline is refused before the start."""

import json
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from vertex_testing.runs import STEP, Command, Compile
from vertex_testing.server import Server


@dsl.component(**STEP)
def take(values: dict, path: str = "somewhere") -> None:
    with open(path, "w") as file:
        file.write(str(values))


@dsl.pipeline(name="takes")
def takes(source: str, path: str, values: dict = {"a": 1}) -> None:  # noqa: B006
    take(values=values, path=path)


@dsl.pipeline(name="constant")
def constant(source: str, path: str) -> None:
    take(values={"a": ["--data=gs://bucket/constant"]}, path=path)


@pytest.mark.parametrize(
    ("pipeline", "parameters", "named"),
    [
        (takes, {"source": "gs://bucket/x"}, "parameter source: gs://bucket/x is in Cloud Storage"),
        (takes, {"source": "", "values": '{"a": [{"b": "gs://bucket/y"}]}'}, "parameter values: gs://bucket/y"),
        (takes, {"source": "", "values": '{"a": ["--dataset=gs://bucket/z"]}'}, "parameter values: --dataset=gs://b"),
        (constant, {"source": ""}, "tasks.take.inputs.parameters.values: --data=gs://bucket/constant is in Cloud"),
    ],
)
def test_a_bucket_is_refused_before_anything_is_written(
    compiled: Compile, command: Command, tmp_path: Path, pipeline: Any, parameters: dict[str, str], named: str
) -> None:
    compiled(pipeline)
    words = [f"--parameter={name}={value}" for name, value in (parameters | {"path": str(tmp_path / "ran")}).items()]
    done = command("run", "pipeline.json", *words)
    assert done.returncode == 2
    assert named in done.stderr
    assert "--with-credentials" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "runs").exists()
    assert command("run", "pipeline.json", *words, "--with-credentials").returncode == 0
    assert (tmp_path / "ran").exists()


def test_a_text_that_mentions_a_bucket_is_no_address(compiled: Compile, command: Command, tmp_path: Path) -> None:
    compiled(takes)
    words = ["--parameter", "source=no images in gs://b/x", "--parameter", f"path={tmp_path / 'ran'}"]
    assert command("run", "pipeline.json", *words).returncode == 0


@pytest.mark.parametrize(
    ("emulator", "code"), [("http://localhost:4443", 0), ("127.0.0.1:4443", 0), ("http://gcs.example.org", 2)]
)
def test_an_emulator_on_this_machine_answers_for_buckets(
    compiled: Compile, command: Command, tmp_path: Path, emulator: str, code: int
) -> None:
    compiled(takes)
    words = ["--parameter", "source=gs://bucket/x", "--parameter", f"path={tmp_path / 'ran'}"]
    assert command("run", "pipeline.json", *words, STORAGE_EMULATOR_HOST=emulator).returncode == code


def test_the_server_refuses_a_bucket(compiled: Compile, server: Server, tmp_path: Path) -> None:
    spec = json.loads(compiled(takes).read_text())
    values = {"source": "gs://bucket/x", "path": str(tmp_path / "ran")}
    answer = server.call("POST", "pipelineJobs", {"pipelineSpec": spec, "runtimeConfig": {"parameterValues": values}})
    assert answer.status_code == 400
    assert "parameter source: gs://bucket/x is in Cloud Storage" in answer.json()["error"]["message"]
    assert not (tmp_path / "ran").exists()


def test_a_resumed_run_needs_its_credentials_again(compiled: Compile, command: Command, tmp_path: Path) -> None:
    compiled(takes)
    words = ["--parameter", "source=gs://bucket/x", "--parameter", f"path={tmp_path / 'missing' / 'ran'}"]
    assert command("run", "pipeline.json", *words, "--with-credentials", "--run-id", "r").returncode == 1
    refused = command("run", "--resume", "r")
    assert (refused.returncode, "--with-credentials" in refused.stderr) == (2, True)
    (tmp_path / "missing").mkdir()
    assert command("run", "--resume", "r", "--with-credentials").returncode == 0
