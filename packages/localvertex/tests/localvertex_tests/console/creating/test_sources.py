"""Where a new run comes from: compiled files of the folder, and earlier runs with what they no longer have."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support.run_records import run_record

from localvertex._base.userinput.errors import UserError
from localvertex.commands.service import Service
from localvertex.console.creating.creating import Creating
from localvertex.console.local_route import LocalCall
from localvertex.processes.sinks import MASK
from vertex_testing.server import Server, wait_until

COMPILED = Path(__file__).parents[2] / "constructs" / "compiled"


@pytest.fixture
def creating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Creating:
    """Return the routes of a server that was started in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Creating(Service(tmp_path / "runs", time_factor=1, log=print).pipeline_jobs)


def checked(creating: Creating, **body: Any) -> dict[str, Any]:
    return creating.check(LocalCall(body=body))


def earlier_run(folder: Path, **fields: Any) -> str:
    """Write the record of a run of a pipeline with an input artifact."""
    run_dir = folder / "runs" / "earlier-1"
    run_dir.mkdir(parents=True)
    content = json.loads((COMPILED / "input_artifact.json").read_text())
    spec = content.get("pipelineSpec", content)
    texts = {name: {"parameterType": "STRING", "defaultValue": "d"} for name in ("a", "b", "c")}
    spec["root"]["inputDefinitions"]["parameters"] = texts
    (run_dir / "pipeline.json").write_text(json.dumps(content))
    record = run_record(folder / "runs", "earlier-1", "2026-01-01T00:00:00.000Z", **fields)
    (run_dir / "run.json").write_text(json.dumps(record))
    return "earlier-1"


def test_a_secret_of_the_earlier_run_is_asked_for_again(creating: Creating, tmp_path: Path) -> None:
    values = {"a": "own", "b": f"key={MASK}", "c": "d"}
    run_id = earlier_run(tmp_path, parameters=values, region="europe-west4")
    found = checked(creating, run=run_id)
    assert {each["name"]: each["value"] for each in found["parameters"]} == {"a": "own", "b": None, "c": None}
    assert found["warnings"] == ["Parameter b contained a secret, which is not stored. Enter it again."]
    assert (found["region"], found["path"]) == ("europe-west4", "runs/earlier-1/pipeline.json")
    assert MASK not in json.dumps(found)


def test_a_run_of_an_unknown_region_is_created_in_a_known_one(creating: Creating, tmp_path: Path) -> None:
    assert checked(creating, run=earlier_run(tmp_path, parameters={}, region="moon"))["region"] == "us-central1"


def test_only_compiled_files_of_the_folder_are_listed(creating: Creating, tmp_path: Path) -> None:
    assert creating.files(LocalCall()) == {"folder": "build", "files": []}
    build = tmp_path / "build"
    (build / "folder.json").mkdir(parents=True)
    for number, name in enumerate(("a.json", "ü b.yaml", "new\nline.json", "notes.txt", "\udcff.json")):
        path = build / name
        shutil.copy(COMPILED / "only_a_pipeline.json", path)
        os.utime(path, (number, number))
    (build / "gone.json").symlink_to("nowhere")
    os.mkfifo(build / "pipe.json")
    listed = [each["path"] for each in creating.files(LocalCall())["files"]]
    assert listed == ["build/ü b.yaml", "build/a.json"]
    assert checked(creating, file="build/a.json")["path"] == "build/a.json"


def test_a_file_in_utf_16_is_read_and_other_bytes_are_refused(creating: Creating, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    text = (COMPILED / "only_a_pipeline.json").read_text()
    (tmp_path / "build" / "a.json").write_bytes(text.encode("utf-16"))
    assert checked(creating, file="build/a.json")["content"] == text
    (tmp_path / "build" / "b.json").write_bytes('{"a": "é"}'.encode("latin-1"))
    with pytest.raises(UserError, match="expected JSON or YAML in UTF-8"):
        checked(creating, file="build/b.json")


def test_what_differs_from_the_service_is_said(creating: Creating) -> None:
    content = (COMPILED / "kubernetes_settings.yaml").read_text()
    (note,) = checked(creating, content=content, name="p.yaml")["notes"]
    assert "activeDeadlineSeconds" in note
    form = checked(creating, content=content, name="p.yaml", parameters={})
    assert form["notes"] == [note]
    found = checked(creating, content=(COMPILED / "integers.json").read_text())
    name = next(each["name"] for each in found["parameters"] if each["type"] == "NUMBER_INTEGER")
    form = checked(creating, content=found["content"], parameters={name: "9007199254740993"})
    assert any("9007199254740993" in each for each in form["notes"])


def started(server: Server, **body: Any) -> dict[str, Any]:
    """Start a run as the form does, and return its record at the end."""
    answer = server.request("POST", "/local/check", json={"parameters": {}, "is_start": True, **body}).json()
    job = server.request("POST", f"/v1/{answer['location']}/pipelineJobs", json=answer["request"]).json()
    path = server.work_dir / job["name"].rpartition("/")[2] / "run.json"
    record: dict[str, Any] = wait_until(lambda: (found := json.loads(path.read_text()))["end_time"] and found)
    return record


def test_a_run_has_the_path_and_the_digest_of_its_file(
    start_server: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "build" / "a.json"
    path.parent.mkdir()
    data = (COMPILED / "importer_alone.json").read_text().encode("utf-16")
    path.write_bytes(data)
    server = start_server()
    of_file = str(path), hashlib.sha256(data).hexdigest()
    overview = server.request("POST", "/local/check", json={"file": "build/a.json"}).json()
    # The form sends the text with the path that it has from the server.
    texts = {name: overview[name] for name in ("content", "path")} | {"name": "a.json"}
    first = started(server, **texts, use_cache=False)
    assert (first["file"], first["sha256"]) == of_file
    again = started(server, run=first["run_id"])
    assert (again["file"], again["sha256"]) == of_file
    # A dropped file has only a name, and another file of this folder may have it.
    text = (COMPILED / "only_a_pipeline.json").read_text()
    dropped = started(server, content=text, name="a.json", path="build/a.json")
    assert (dropped["file"], dropped["sha256"]) == ("a.json", hashlib.sha256(text.encode()).hexdigest())
    # Other clients send no file: the run has the one that it keeps.
    body = {"pipelineSpec": json.loads(text).get("pipelineSpec", json.loads(text))}
    name = server.call("POST", "pipelineJobs", body).json()["name"]
    copy = server.work_dir / name.rpartition("/")[2] / "pipeline.json"
    record = json.loads((copy.parent / "run.json").read_text())
    assert (record["file"], record["sha256"]) == (str(copy), hashlib.sha256(copy.read_bytes()).hexdigest())


def test_a_changed_copy_is_not_resumed(start_server: Callable[..., Server], tmp_path: Path) -> None:
    server = start_server()
    text = (COMPILED / "importer_alone.json").read_text()
    record = started(server, content=text, name="a.json")
    run_dir = server.work_dir / record["run_id"]
    (run_dir / "run.json").write_text(json.dumps(record | {"state": "FAILED"}))
    copy = run_dir / "pipeline.json"
    data = copy.read_text()
    copy.write_text(data + " ")
    path = f"/local/runs/{record['run_id']}:retry"
    assert "is not the file" in server.request("POST", path, json={}).json()["error"]["message"]
    copy.write_text(data)
    assert server.request("POST", path, json={}).ok
