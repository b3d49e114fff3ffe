"""A confined command leaves nothing that leads localvertex itself to files of the user."""

import json
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from localvertex_tests.containers.test_replicas import pool

from localvertex.processes import logs
from vertex_testing.runs import STEP, Execute, FindTask

pytestmark = pytest.mark.usefixtures("sandbox")


@dsl.container_component
def leave(script: str, out: dsl.OutputPath(str), data: dsl.Output[dsl.Dataset]) -> dsl.ContainerSpec:
    command = ["sh", "-ec", 'mkdir -p "$(dirname "$1")"; echo ok > "$1"; echo ok > "$2"; eval "$0"']
    return dsl.ContainerSpec(image="alpine", command=command, args=[script, out, data.path, "{{$}}"])


@dsl.component(**STEP)
def read(text: str) -> str:
    return text


@dsl.pipeline(name="leaves")
def leaves(script: str) -> None:
    step = leave(script=script).set_retry(2)
    read(text=step.outputs["out"])


@dsl.pipeline(name="jobs")
def jobs(pools: list) -> None:
    CustomTrainingJobOp(display_name="j", worker_pool_specs=pools)


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("planted")
    (home / ".bashrc").write_text("planted")
    monkeypatch.setenv("HOME", str(home))
    return home


FORMS = {
    "the log": "rm log.txt; ln -s {home}/.bashrc log.txt; echo intruder",
    "the log, and a failure": "rm log.txt; ln -s {home}/.bashrc log.txt; echo intruder; exit 1",
    "a new file": "rm log.txt; ln -s {home}/.profile log.txt; exit 1",
    "an output": 'rm "$1"; ln -s {home}/.ssh/id_rsa "$1"',
    "an artifact": 'rm "$2"; ln -s {home}/.ssh "$2"',
    "a pipe": 'rm "$1"; mkfifo "$1"',
    "a folder": "ln -s {home} folder",
    "a custom path": "echo '{output}' > executor_output.json",
}


@pytest.mark.parametrize("form", FORMS)
def test_no_link_leads_out_of_the_folder(
    execute: Execute, task: FindTask, secret: Path, work_dir: Path, form: str
) -> None:
    artifact = {"uri": str(work_dir / "r" / "leave" / "data"), "custom_path": str(secret / ".ssh")}
    output = json.dumps({"artifacts": {"data": {"artifacts": [artifact]}}})
    record = execute(leaves, {"script": FORMS[form].format(home=secret, output=output)}, run_id="r")
    found = task(record, "leave")
    assert (found["state"], found["attempts"]) == ("FAILED", 1)
    expected = "may not see" if form == "a custom path" else "link out of its folder; it was removed"
    assert expected in found["error"]
    assert task(record, "read")["state"] == "NOT_TRIGGERED"
    assert (secret / ".bashrc").read_text() == "planted"
    assert not (secret / ".profile").exists()
    assert "planted" not in (work_dir / "r" / "run.json").read_text()
    assert not [path for path in (work_dir / "r" / "leave").rglob("*") if path.is_symlink() or path.is_fifo()]


NAMED = {
    "a link in the temporary folder": {"custom_path": "$TMPDIR/x"},
    "another address": {"uri": "{home}/.ssh"},
    "a bucket's link": {"custom_path": "gs://data/x"},
    "a mount's link": {"custom_path": "/gcs/data/x"},
}


@pytest.mark.parametrize("form", NAMED)
def test_an_artifact_is_never_a_file_of_the_user(
    execute: Execute, task: FindTask, secret: Path, work_dir: Path, tmp_path: Path, form: str
) -> None:
    (tmp_path / "buckets" / "data").mkdir(parents=True)
    artifact = {"uri": str(work_dir / "r" / "leave" / "data"), **NAMED[form]}
    output = json.dumps({"artifacts": {"data": {"artifacts": [artifact]}}}).replace("{home}", str(secret))
    places = " ".join(f"mkdir {each}/x; ln -s {secret}/.ssh {each}/x/keys;" for each in ("$TMPDIR", "/gcs/data"))
    script = f"{places} cat > executor_output.json <<END\n{output}\nEND"
    record = execute(leaves, {"script": script}, run_id="r", gcs_root=tmp_path / "buckets")
    assert task(record, "leave")["state"] == "FAILED"
    assert task(record, "read")["state"] == "NOT_TRIGGERED"
    assert not [path for path in (work_dir / "r").rglob("*") if path.name in ("id_rsa", "keys")]


BESIDE: list[Any] = [
    {"data": {"artifacts": ["x", "{artifact}"]}, "other": 5},
    {"data": {"artifacts": ["{artifact}"]}, "other": {"artifacts": [5, {"custom_path": 5}]}},
    [["data", {"artifacts": ["{artifact}"]}]],
]
"""What a reader may skip or read in another way."""


@pytest.mark.parametrize("beside", BESIDE, ids=str)
def test_nothing_beside_an_artifact_hides_its_path(
    execute: Execute, task: FindTask, secret: Path, work_dir: Path, beside: Any
) -> None:
    artifact = {"uri": str(work_dir / "r" / "leave" / "data"), "custom_path": str(secret / ".ssh")}
    output = json.dumps({"artifacts": beside}).replace('"{artifact}"', json.dumps(artifact))
    record = execute(leaves, {"script": f"echo '{output}' > executor_output.json"}, run_id="r")
    assert "may not see" in task(record, "leave")["error"]
    assert not [*(work_dir / "r").rglob("id_rsa")]


def test_a_confined_command_gives_no_command_to_a_model(execute: Execute, task: FindTask, work_dir: Path) -> None:
    spec = {"imageUri": "serving:1", "command": ["python", "-c", "print('outside')"]}
    artifact = {"uri": str(work_dir / "r" / "leave" / "data"), "metadata": {"containerSpec": spec}}
    output = json.dumps({"artifacts": {"data": {"artifacts": [artifact]}}})
    script = f"cat > executor_output.json <<'END'\n{output}\nEND"
    record = execute(leaves, {"script": script}, run_id="r")
    assert "could run outside the sandbox" in task(record, "leave")["error"]
    assert task(record, "read")["state"] == "NOT_TRIGGERED"


def test_no_new_link_leads_out_of_the_buckets(execute: Execute, task: FindTask, secret: Path, tmp_path: Path) -> None:
    data = tmp_path / "buckets" / "data"
    (data / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (data / "own").symlink_to(tmp_path / "elsewhere")
    script = f"ln -s {secret}/.ssh /gcs/data/deep/keys; ln -s b /gcs/data/a"
    record = execute(leaves, {"script": script}, gcs_root=data.parent)
    assert (task(record, "leave")["state"], task(record, "leave")["attempts"]) == ("FAILED", 1)
    assert "it was removed" in task(record, "leave")["error"]
    assert not (data / "deep" / "keys").is_symlink()
    assert (data / "own").is_symlink(), "the user's own link is not touched"
    assert (data / "a").is_symlink(), "a link within the buckets is no way out"


def test_links_into_the_buckets_stay(execute: Execute, task: FindTask, tmp_path: Path) -> None:
    (tmp_path / "buckets" / "data").mkdir(parents=True)
    record = execute(leaves, {"script": f"ln -s {tmp_path}/buckets/data one"}, gcs_root=tmp_path / "buckets")
    assert task(record, "leave")["state"] == "SUCCEEDED", record["error"]


def test_links_to_what_a_command_sees_stay(execute: Execute, task: FindTask, work_dir: Path) -> None:
    record = execute(leaves, {"script": 'ln -s /usr/bin/env tool; ln -s "$2" data-link; ln -s ../run.json r'})
    assert task(record, "leave")["state"] == "SUCCEEDED", record["error"]
    assert task(record, "read")["outputs"]["parameters"]["Output"] == "ok\n"


def test_a_replica_that_replaces_its_log_writes_no_other_file(execute: Execute, task: FindTask, secret: Path) -> None:
    script = f"echo intruder; rm workerpool0-0.log log.txt; ln -s {secret}/.bashrc workerpool0-0.log; exit 1"
    record: dict[str, Any] = execute(jobs, {"pools": [pool("sh", "-c", script)]})
    assert task(record, "custom-training-job")["state"] == "FAILED"
    assert (secret / ".bashrc").read_text() == "planted"


def test_a_log_is_never_a_link(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"):
        logs.add(tmp_path / "log", "text")
    assert not (tmp_path / "other").exists()
