"""Where a new run comes from: compiled files of the folder, and earlier runs with what they no longer have."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support.run_records import run_record

from localvertex._base.userinput.errors import UserError
from localvertex.commands.service import Service
from localvertex.console.creating.creating import Creating
from localvertex.console.local_route import LocalCall
from localvertex.processes.sinks import MASK

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
